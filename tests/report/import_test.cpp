// Small texts in the published forms, with the oddities that the real ones have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "published.h"
#include "report/table_forms.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string error_of(const std::string& content) {
  try {
    test::through_records("text.md", content);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string row_text(const Table& table, std::size_t row) {
  std::string text;
  for (const TableValue& value : table.rows.at(row).values) text += (text.empty() ? "" : "|") + value.text;
  return text;
}

const char* const kLog =
    "workers 2\n\nRunning with 1 GPUs\nEpoch is [1/1], batch size 16\nTraining time: 8.50 seconds\n"
    "Communication time: 0.5000 seconds\n-----------------\n\nU_Net\n\nRunning with 2 GPUs\n"
    "Epoch is [1/2], batch size 16\nEpoch is [1/2], batch size 16\nTraining time: 4.00 seconds\n"
    "Communication time: 0.2500 seconds\nEpoch is [2/2], batch size 16\nTraining time: 4.01 seconds\n"
    "Communication time: 0.2600 seconds\n----\nEpoch is [2/2], batch size 16\nTraining time: 3.00 seconds\n"
    "Communication time: 0.1500 seconds\nTraining time: 3.01 seconds\nCommunication time: 0.1600 seconds\n";

TEST(ImportRankTimes, GivesEveryRankItsTimes) {
  const Table table = rank_times_table(test::through_records("log.txt", kLog));
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(row_text(table, 0), "published|U_Net|16|2|1|1|0|8.50|0.5000");
  EXPECT_EQ(row_text(table, 1), "published|U_Net|16|2|2|1|0|4.00|0.2500");
  EXPECT_EQ(row_text(table, 2), "published|U_Net|16|2|2|1|1|4.01|0.2600");
  EXPECT_EQ(row_text(table, 4), "published|U_Net|16|2|2|2|1|3.01|0.1600");
  EXPECT_EQ(table.columns[table.column("ranks")].label, "GPUs");
}

TEST(ImportRankTimes, NamesTheLineWhereALogBreaksOff) {
  const std::string text = kLog;
  EXPECT_THAT(error_of(text.substr(0, text.rfind("Training time: 3.01"))),
              HasSubstr("text.md, line 11: 2 ranks and 2 epochs make 4 training and communication times, but 3 and 3"));
  EXPECT_THAT(error_of("Running with 1 GPUs\nCommunication time: 1 seconds\n"), HasSubstr("line 2: no training time"));
  EXPECT_THAT(error_of("Running with 1 GPUs\nTraining time: soon seconds\n"),
              HasSubstr("'soon' is no number of seconds"));
  EXPECT_THAT(error_of("Running with 1 GPUs\nwhat is this?\n"), HasSubstr("line 2: this is no line of such a log"));
  EXPECT_THAT(error_of("Running with 999999999999 GPUs\n"), HasSubstr("line 1"));
}

const char* const kRates =
    "# MNIST Without collective communication, Adam(lr=0.01)\n## ResNet18-2080ti-128batch_size\n### lm6-120.7\n"
    "- Step200: 100.71 data/sec\n- Epoch 0 in 543.88 sec, test time 13.77 sec, test accuracy:0.86263\n"
    "- Step 400 120.70 data/sec\n- Epoch 1 in 400 sec, test time 8.71 sec. est accuracy 0.9186\n\n## lm1-81.84\n"
    "- Step200: 81.84 data/sec\n# Two nodes, MNIST With collective communication, Adam(lr=0.01*world_size)\n"
    "## ResNet18-lm1:2x2080ti, lm6:1x2080ti-128batch_size, 163.68-2.1x, baseline: 81.84\n- Step200: 150 data/sec\n"
    "- Step200: 163.68 data/sec\n# Distributed, 16 nodes\n";

TEST(ImportStepRates, TakesTheSlowestOfUnequalNodesAsBaseline) {
  std::vector<std::string> import_notes, notes;
  const std::vector<Cell> cells = test::through_records("rates.md", kRates, &import_notes);
  const Table table = step_rates_table(group_cells(cells), notes);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(row_text(table, 0), "published|ResNet18|128|1|lm6|100.71|120.70|120.70||");
  EXPECT_EQ(row_text(table, 1), "published|ResNet18|128|1|lm1|81.84||81.84||");
  EXPECT_EQ(row_text(table, 2), "published|ResNet18|128|3|lm1:2, lm6:1|150.00 / 163.68||163.68|81.84|2.10");
  EXPECT_THAT(import_notes, Contains(HasSubstr("step 200 is there twice")));
  EXPECT_THAT(notes, Contains(HasSubstr("states a speed-up of 2.1; its own figures give 2.00")));
  const Table epochs = epochs_table(cells);
  ASSERT_EQ(epochs.rows.size(), 2u);
  EXPECT_EQ(row_text(epochs, 0), "published|ResNet18|128|1|lm6|0|543.88|13.77|0.8626");
  EXPECT_EQ(row_text(epochs, 1), "published|ResNet18|128|1|lm6|1|400.00|8.71|0.9186");
}

TEST(ImportStepRates, NamesTheLineItCannotRead) {
  EXPECT_THAT(error_of("# x\n- Step200: 1 data/sec\n"), HasSubstr("text.md, line 2: no heading above says which node"));
  EXPECT_THAT(error_of("# x\n## lm1-5\n- Step200: 1 data/sec\n"), HasSubstr("line 2: no heading above names a model"));
  EXPECT_THAT(error_of("## ResNet18-x\n## lm1-5\n- Step200: 1 data/sec\n- Step: fast\n"),
              HasSubstr("line 4: this is neither a step's rate nor an epoch's times: - Step: fast"));
  EXPECT_THAT(error_of("## ResNet18-x\n## lm1-5.5.5\n- Step200: 1 data/sec\n"), HasSubstr("'5.5.5' is no rate"));
}

const char* const kStrategies =
    "| DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs |\n|---|---|---|---|---|---|---|\n"
    "| ResNet-50 | 64 | 10GbE | BSP | 250.0 | 500.000 +- 5.00 |\n"
    "| ResNet-50 | 64 | 10GbE | WFBP | 250.0 | 900.125 +- 4.50 | \n"
    "| ResNet-50 | 64 | 10GbE | DeAR | 250.0 | 905 ± 4.5 |\n";

TEST(ImportStrategies, GivesRatesDeviationsAndEfficiency) {
  std::vector<std::string> notes;
  const std::vector<Cell> cells = test::through_records("s.md", kStrategies, &notes);
  const std::vector<Group> groups = group_cells(cells);
  const Table table = strategies_table(groups);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(row_text(table, 0), "published|ResNet-50|64|10GbE|BSP|250.0|500.00 ± 5.00|50.0 %");
  EXPECT_EQ(row_text(table, 2), "published|ResNet-50|64|10GbE|DeAR|250.0|905.00 ± 4.50|90.5 %");
  std::vector<std::string> warnings;
  const Table fastest = fastest_table(groups, warnings);
  ASSERT_EQ(fastest.rows.size(), 1u);
  EXPECT_EQ(fastest.rows[0].values[fastest.column("fastest")].text, "no winner");
  EXPECT_EQ(fastest.rows[0].values[fastest.column("equals")].text, "DeAR, WFBP");
  EXPECT_THAT(warnings, Contains(HasSubstr("noise exceeds the difference")));
}

TEST(ImportStrategies, NamesARowThatDoesNotFitTheHeader) {
  const std::string header = "| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs |\n";
  EXPECT_THAT(error_of(header + "| a | 64 | b | c | 1 |\n"), HasSubstr("line 2: 5 fields where the header has 6"));
  EXPECT_THAT(error_of(header + "| a | 64 | b | c | 1 | 2 | 3 |\n"), HasSubstr("7 fields"));
  EXPECT_THAT(error_of(header + "| a | x | b | c | 1 | 2 |\n"), HasSubstr("'x' is no batch size"));
  EXPECT_THAT(error_of(header + "| a | 64 | b | c | 1 | 2 +- much |\n"), HasSubstr("'much' is no deviation"));
  EXPECT_THAT(error_of(header), HasSubstr("no results"));
  EXPECT_THAT(error_of("| DNN | BS | CONNECTION | METHOD | Baseline | many GPUs |\n"), HasSubstr("'many GPUs'"));
}

const char* const kNodes =
    "# MNIST Performance Results\n| #Nodes | #GPUs | Epoch | Batchsize | Steps | Runtime | Speedup | Node(s) |\n"
    "|---|---|---|---|---|---|---|---|\n| 1 | 1 | 10 | 64 | 938 | 2:00:00 | 1 | gn03 |\n"
    "| 2 | 2 | 10 | 64 | 469 | 0:50:00 | - | gn[02,05] |\n| 2 | 2 | 10 | 64 | 469 | 1:10:00 | - | gn[01-02] |\n";

TEST(ImportNodes, AveragesOverRepeatsOnDifferentNodes) {
  std::vector<std::string> notes;
  const Table table = nodes_table(test::through_records("n.md", kNodes), notes);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(row_text(table, 0), "published|MNIST|1|1|10|64|938|2:00:00|1.00|gn03");
  EXPECT_EQ(row_text(table, 1), "published|MNIST|2|2|10|64|469|0:50:00||gn[02,05]");
  EXPECT_EQ(row_text(table, 3), "published|MNIST|2|2|10|64|469|1:00:00|2.00|Avg");
  EXPECT_TRUE(table.rows[3].is_summary);
  EXPECT_THAT(notes, ::testing::IsEmpty());
}

TEST(NodesTable, CountsSpeedUpForAsManySamplesNotSteps) {
  // Both made 100 steps; that of two ranks took two samples where the other took one.
  std::vector<Cell> cells(2);
  for (int i = 0; i < 2; ++i) {
    cells[i].config.model = "mnist-cnn";
    cells[i].config.ranks = i + 1;
    cells[i].steps = 100;
    cells[i].samples_per_step = 64 * (i + 1);
    cells[i].run_s = i == 0 ? 100 : 120;
    cells[i].run = i == 0 ? "one" : "two";
  }
  std::vector<std::string> notes;
  const Table table = nodes_table(cells, notes);
  EXPECT_EQ(table.rows.at(1).values[table.column("speedup")].text, "1.67");
  EXPECT_EQ(table.rows.at(1).values[table.column("run")].text, "two");
}

TEST(ImportNodes, ShowsAStatedAverageAndNotesWhereItIsWrong) {
  std::vector<std::string> notes;
  const Table table =
      nodes_table(test::through_records(
                      "n.md", std::string(kNodes) +
                                  "| **2** | **2** | **10** | **64** | **469** | **1:30:00** | **1.5** | **Avg** |\n"),
                  notes);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(row_text(table, 3), "published|MNIST|2|2|10|64|469|1:30:00|1.50|Avg");
  EXPECT_THAT(notes, Contains(HasSubstr("an average run time of 1:30:00; its rows give 1:00:00")));
  EXPECT_THAT(notes, Contains(HasSubstr("a speed-up of 1.5; its own run times give 1.33")));
}

TEST(ImportNodes, NamesTheRowItCannotRead) {
  const std::string text = kNodes;
  EXPECT_THAT(error_of(text + "| 2 | 2 | 10 | 64 | 469 | soon | - | a |\n"),
              HasSubstr("line 7: 'soon' is no run time"));
  EXPECT_THAT(error_of(text + "| 0 | 2 | 10 | 64 | 469 | 1:00:00 | - | a |\n"), HasSubstr("line 7: nothing runs on"));
  EXPECT_THAT(error_of(text + "| 2 | 2 | 10 |\n"), HasSubstr("3 fields where the header has 8"));
  EXPECT_THAT(error_of(text + "and so on\n"), HasSubstr("line 7: this is no row of a table: and so on"));
}

TEST(Import, PassesOverWhatOnlyLaysATextOut) {
  const std::string layout =
      "\n# Figures\n<div align=\"center\">\n<img src=\"./a.png\" align=center/>\n![b](b.png)\n</div>";
  for (const char* text : {kLog, kRates, kStrategies, kNodes})
    EXPECT_EQ(test::through_records("t", text + layout).size(), test::through_records("t", text).size()) << text;
  EXPECT_EQ(error_of(kNodes + layout), "");
}

TEST(ImportFigures, GiveTheCellsOfEveryForm) {
  std::vector<std::string> notes;
  const auto tables_of = [&](const std::string& content) { return test::through_records("f.csv", content, &notes); };
  const Table ranks = rank_times_table(
      tables_of("# Source: us\nmodel,batch,workers,ranks,epoch,rank,train_s,comm_s\nnet,16,2,2,1,0,4.00,0.25\n"
                "net,16,2,2,1,1,4.01,0.26\nnet,16,2,1,1,0,8.5,0.5\n"));
  ASSERT_EQ(ranks.rows.size(), 3u);
  EXPECT_EQ(row_text(ranks, 1), "published|net|16|2|2|1|1|4.01|0.2600");
  EXPECT_EQ(row_text(ranks, 2), "published|net|16|2|1|1|0|8.50|0.5000");
  EXPECT_THAT(notes, ::testing::ElementsAre("f.csv: figures of us"));
  const std::vector<Cell> cells = tables_of(
      "model,batch,ranks,hosts,gpu,samples_per_s,speedup,epoch,step,data_per_s,train_s,test_s,test_accuracy\n"
      "net,128,1,lm1:1,x,81.84,,0,200,80,,,\nnet,128,1,lm1:1,x,81.84,,0,,,543.88,13.77,0.8\n"
      "net,128,3,lm1:2 lm6:1,x,163.68,2.0,0,200,150,,,\nnet,128,3,lm1:2 lm6:1,x,163.68,2.0,0,200,151,,,\n");
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[1].nodes.at(1).gpu, "x");
  EXPECT_THAT(notes, ::testing::ElementsAre("f.csv:4: step 200 is there twice; both rates are kept"));
  EXPECT_EQ(row_text(step_rates_table(group_cells(cells), notes), 1),
            "published|net|128|3|lm1:2, lm6:1|150.00 / 151.00|163.68|81.84|2.00");
  EXPECT_EQ(row_text(epochs_table(cells), 0), "published|net|128|1|lm1|0|543.88|13.77|0.8000");
  const Table nodes = nodes_table(tables_of("data,batch,nodes,ranks,epochs,steps,run_s,speedup,node_list\n"
                                            "MNIST,64,1,1,10,938,7200,1,gn03\nMNIST,64,2,4,10,469,3000,,\"gn[02,05]\"\n"
                                            "MNIST,64,2,4,10,469,4200,,\"gn[01-02]\"\n"),
                                  notes);
  ASSERT_EQ(nodes.rows.size(), 4u);
  EXPECT_EQ(row_text(nodes, 1), "published|MNIST|2|2|10|64|469|0:50:00||gn[02,05]");
  EXPECT_EQ(row_text(nodes, 3), "published|MNIST|2|2|10|64|469|1:00:00|2.00|Avg");
}

TEST(ImportFigures, NameTheRowTheyCannotRead) {
  const std::string header = "model,ranks,hosts,samples_per_s\n";
  EXPECT_THAT(error_of(header + "net,2,lm1:2,100\nnet,none,lm1:2,100\n"), HasSubstr("line 3: 'none' is no ranks"));
  EXPECT_THAT(error_of(header + "net,0,,100\n"), HasSubstr("line 2: nothing runs on"));
  EXPECT_THAT(error_of(header + "net,2,lm1,100\n"), HasSubstr("line 2: '' is no number of ranks of a host"));
  EXPECT_THAT(error_of(header), HasSubstr("no results"));
}

TEST(Import, SaysWhichFormsItKnows) {
  EXPECT_THAT(error_of("Dear reader,\n"), HasSubstr("none of the forms that can be read"));
  EXPECT_THAT(error_of(""), HasSubstr("none of the forms"));
}

}  // namespace
}  // namespace tutti
