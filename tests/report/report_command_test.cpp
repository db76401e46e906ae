#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A sweep of two strategies on two networks with one and two ranks, three repeats each; at `rate` × ranks samples/s.
std::string sweep(double rate) {
  std::string text;
  for (const char* network : {"1gbe", "10gbe"})
    for (const char* strategy : {"bsp", "dear"})
      for (const int ranks : {1, 2})
        for (int repeat = 1; repeat <= 3; ++repeat) {
          const double step_s = 64 / rate * (1 + 0.001 * repeat) * (std::string(strategy) == "dear" ? 0.9 : 1);
          const std::string id = fmt::format("{}-{}-{}", network, strategy, ranks);
          json record = {
              {"record", "cell"},
              {"cell", id},
              {"repeat", repeat},
              {"status", "done"},
              {"source", "measured"},
              {"config",
               {{"model", "resnet18"},
                {"batch", 64},
                {"network", network},
                {"strategy", strategy},
                {"ranks", ranks},
                {"nodes", 1}}},
              {"samples_per_step", 64 * ranks},
              {"step_s", std::vector<double>(20, step_s)},
              {"epochs",
               {{{"epoch", 1}, {"train_s", 10 * step_s}, {"test_s", 1}, {"test_accuracy", 0.5}, {"loss", 2}},
                {{"epoch", 2}, {"train_s", 10 * step_s}, {"test_s", 1}, {"test_accuracy", 0.6}, {"loss", 1}}}},
              {"breakdown",
               {{"compute_s", 0.5 * step_s},
                {"exposed", {{"bandwidth", 0.25 * step_s}}},
                {"data_wait_s", 0},
                {"optimizer_s", 0.25 * step_s}}},
              {"run_s", 20 * step_s},
              {"node_list", "n0"},
              {"environment", {{"cores", 2}}},
              {"load", 0.5}};
          text += record.dump() + "\n";
        }
  return text;
}

class ReportCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-report-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "runs/before");
    fs::create_directories(folder_ / "runs/after");
    write("runs/before/cells.jsonl", sweep(1000));
    write("runs/before/sweep.json", R"({"title": "It's a <sweep>", "command": "tutti bench it"})");
    write("runs/after/cells.jsonl", sweep(800));
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  CommandResult report(const std::string& arguments) const {
    return run_command("cd '" + folder_.string() + "' && " TUTTI_REPORT_TOOL " report " + arguments);
  }

  fs::path folder_;
};

TEST_F(ReportCommand, PrintsTablesThatFit) {
  const CommandResult result = report("before");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("# It's a <sweep>"));
  EXPECT_THAT(result.output,
              HasSubstr("\nfastest: dear in 2 of 2 (comparisons of strategies under the same conditions: "));
  EXPECT_THAT(result.output,
              HasSubstr("| 1gbe    | bsp      |  998.00 ± 1.00 | 1996.01 ± 1.99 | 100.0 % |            998.0 |"));
  EXPECT_THAT(result.output, HasSubstr("The same in all rows: source measured, model resnet18, batch 64. Mean ± "));
  EXPECT_THAT(result.output, HasSubstr("## Which strategy is fastest"));
  EXPECT_THAT(result.output, HasSubstr("| 10gbe   | dear    |             11.1 % |"));
  EXPECT_THAT(result.output, HasSubstr("## Run time by nodes and ranks of each"));
  EXPECT_THAT(result.output, Not(HasSubstr("Failed cells")));
}

TEST_F(ReportCommand, PutsPublishedFiguresBesideOnesOwn) {
  for (const char* name : {"mnist_bigmnist_cluster", "resnet_single_node", "resnet_transformer_two_nodes",
                           "strategies_networks", "strategies_networks_bert_large", "unet_gpus_workers"}) {
    const CommandResult result = report(std::string(TUTTI_SOURCE_DIR "/published/") + name + ".csv before --csv");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("\npublished,")) << name;
    EXPECT_THAT(result.output, HasSubstr("\nmeasured,resnet18,")) << name;
  }
}

TEST_F(ReportCommand, PrintsMarkdownCsvAndJson) {
  EXPECT_THAT(report("before --md").output, HasSubstr("| 1gbe | bsp | 998.00 ± 1.00 | 1996.01 ± 1.99 |"));
  EXPECT_THAT(report("before --csv").output,
              HasSubstr("# strategies: Samples/s by model, network, strategy and number of "
                        "ranks\nsource,model,batch,network,strategy,baseline,ranks_1,ranks_1_deviation,"));
  const json document = json::parse(report("before --json").output);
  EXPECT_EQ(document["title"], "It's a <sweep>");
  EXPECT_EQ(document["command"], "tutti bench it");
  EXPECT_EQ(document["environment"]["cores"], 2);
  EXPECT_EQ(document["tables"][0]["id"], "strategies");
}

TEST_F(ReportCommand, WritesAFolderWithPageTablesAndFigures) {
  const CommandResult result = report("before -o 'out put'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const fs::path out = folder_ / "out put";
  for (const char* file :
       {"report.html", "report.md", "report.json", "strategies.csv", "fastest.csv", "statistics.csv", "nodes.csv"})
    EXPECT_TRUE(fs::file_size(out / file) > 0) << file;
  EXPECT_THAT(read_file(out / "report.html"), HasSubstr("It&#39;s a &lt;sweep&gt;"));
  if (result.output.find("there is no gnuplot") != std::string::npos) {
    const char* const required = std::getenv("TUTTI_REQUIRE_DATA");
    ASSERT_TRUE(required == nullptr || std::string(required) != "1") << "figures need gnuplot";
    GTEST_SKIP() << "no gnuplot, so no figures";
  }
  for (const char* figure : {"throughput-1", "throughput-2", "efficiency-1", "efficiency-2", "step-parts", "accuracy",
                             "loss", "strategies-networks-1"}) {
    const std::string svg = read_file(out / "figures" / (std::string(figure) + ".svg"));
    EXPECT_THAT(svg, HasSubstr("</svg>")) << figure;
    EXPECT_EQ(read_file(out / "figures" / (std::string(figure) + ".png")).substr(1, 3), "PNG") << figure;
  }
  EXPECT_THAT(read_file(out / "report.html"), HasSubstr("<svg"));
  EXPECT_THAT(read_file(out / "report.md"), HasSubstr("(figures/throughput-1.svg)"));
}

TEST_F(ReportCommand, IsAsWideAsItsTerminalAndAsItsTablesInAPipe) {
  if (run_command("script --version").exit_code != 0) GTEST_SKIP() << "no script, which makes terminals";
  const auto longest_line = [](const std::string& text) {
    std::size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto letters = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      longest = std::max(longest, static_cast<std::size_t>(letters) - (!line.empty() && line.back() == '\r' ? 1 : 0));
    }
    return longest;
  };
  const CommandResult narrow = run_command(
      "cd '" + folder_.string() + "' && COLUMNS=72 script -qec '" TUTTI_REPORT_TOOL " report before' /dev/null");
  EXPECT_EQ(narrow.exit_code, 0) << narrow.output;
  EXPECT_LE(longest_line(narrow.output), 72u) << narrow.output;
  EXPECT_THAT(narrow.output, HasSubstr("| dear     | 1108.89 ± 1.11 | 2217.79 ± 2.21 |"));
  EXPECT_GT(longest_line(
                run_command("cd '" + folder_.string() + "' && COLUMNS=72 " TUTTI_REPORT_TOOL " report before").output),
            72u);
}

TEST_F(ReportCommand, GoesOnWithoutGnuplot) {
  const CommandResult result = run_command("cd '" + folder_.string() +
                                           "' && PATH=/nowhere " TUTTI_REPORT_TOOL " report before --html page.html");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("there is no gnuplot"));
  EXPECT_TRUE(fs::exists(folder_ / "page.html"));
}

TEST_F(ReportCommand, ComparesAndTellsByItsExitCode) {
  const CommandResult slower = report("--compare before after");
  EXPECT_EQ(slower.exit_code, 1) << slower.output;
  EXPECT_THAT(slower.output, HasSubstr("SLOWER"));
  EXPECT_THAT(slower.output, HasSubstr("0 faster, 8 slower, 0 unchanged, 0 unclear"));
  EXPECT_EQ(report("--compare after before").exit_code, 0);
  EXPECT_EQ(report("--compare before before").exit_code, 0);
  EXPECT_EQ(report("--compare before after --threshold 30").exit_code, 0);
  EXPECT_EQ(report("--compare before,before after,after").exit_code, 1);
}

TEST_F(ReportCommand, PutsMeasuredAndPublishedSideBySideAndKeepsThePublishedAsRecords) {
  write("paper.txt",
        "| DNN | BS | CONNECTION | METHOD | Baseline | 2 GPUs |\n| ResNet-18 | 64 | 1GbE | BSP | 900 | 1500 +- 7 |\n");
  for (const char* arguments : {"before paper.txt -o out", "before --import paper.txt -o out"}) {
    const CommandResult result = report(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("| measured  | resnet18  |"));
    EXPECT_THAT(result.output, HasSubstr("| published | ResNet-18 |"));
    EXPECT_THAT(report("out/cells.jsonl").output, HasSubstr("1500.00 ± 7.00"));
  }
}

TEST_F(ReportCommand, ListsFailedCells) {
  fs::create_directories(folder_ / "runs/broken");
  write("runs/broken/cells.jsonl",
        sweep(1000) +
            R"({"record":"cell","cell":"x","status":"failed","error":"rank 1 left\nstack","config":{"model":"vgg"}})" +
            "\n");
  const CommandResult result = report("broken");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("note: 1 of 25 cells failed"));
  EXPECT_THAT(result.output, HasSubstr("| x    | rank 1 left | vgg           |      1 |"));
}

TEST_F(ReportCommand, SaysWhatIsWrongInOneLine) {
  const auto expect_error = [this](const std::string& arguments, int exit_code, const std::string& text) {
    const CommandResult result = report(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.output;
    EXPECT_THAT(result.output, HasSubstr(text));
  };
  write("damaged.jsonl", "{\"record\":\"cell\",\n");
  write("empty.jsonl", "");
  write("odd.md", "Hello\n");
  expect_error("", 2, "name a run, a sweep or a published text");
  expect_error("befor", 1, "did you mean 'before'?");
  expect_error("damaged.jsonl", 1, "damaged.jsonl, line 1: it is damaged");
  expect_error("empty.jsonl", 1, "has no cells to report");
  expect_error("odd.md", 1, "none of the forms");
  expect_error("--import nothing.md", 1, "nothing.md");
  expect_error("--compare before", 2, "--compare");
  expect_error("--compare before befor", 3, "did you mean 'before'?");
  write("other.jsonl", R"({"record":"cell","cell":"a","config":{"model":"vgg","ranks":2},"run_s":5})"
                       "\n");
  expect_error("--compare before other.jsonl", 3, "nothing in common that could be compared");
  expect_error("after --compare before after", 2, "--compare takes two runs");
}

/// A sweep whose strategies and networks have these names in place of bsp and 1gbe.
std::string sweep_named(const std::string& strategy, const std::string& network) {
  std::string text;
  std::istringstream lines(sweep(1000));
  for (std::string line; std::getline(lines, line);) {
    json record = json::parse(line);
    if (record["config"]["strategy"] == "bsp") record["config"]["strategy"] = strategy;
    if (record["config"]["network"] == "1gbe") record["config"]["network"] = network;
    text += record.dump() + "\n";
  }
  return text;
}

TEST_F(ReportCommand, DoesNotCarryOutWhatARecordSays) {
  for (const char* attack :
       {"x\nEND\n!touch pwned\n#", "x\rEND\r!touch pwned\r#", "x'\n!touch pwned\n'", "`touch pwned`",
        "'.system('touch pwned').'", "\"\nEND\n!touch pwned\n\"", "@pwned", "x\\\n!touch pwned"}) {
    write("runs/before/cells.jsonl", sweep_named(attack, attack));
    const CommandResult result = report("before -o out");
    EXPECT_EQ(result.exit_code, 0) << attack << result.output;
    EXPECT_FALSE(fs::exists(folder_ / "pwned")) << attack;
    if (fs::exists(folder_ / "out/figures")) {
      EXPECT_TRUE(fs::exists(folder_ / "out/figures/step-parts.svg")) << attack;
    }
    remove_tree(folder_ / "out");
  }
  EXPECT_EQ(report("before --html page.html").exit_code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "pwned"));
}

TEST_F(ReportCommand, ShowsNamesInFiguresAsTheyAre) {
  if (run_command("gnuplot --version").exit_code != 0) GTEST_SKIP() << "no gnuplot, so no figures";
  write("runs/before/cells.jsonl", sweep_named("it's \"50%s\" a_b^{c}\\d", "100% {/Bold}"));
  const CommandResult result = report("before -o out");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* figure : {"throughput-1", "throughput-2", "step-parts", "strategies-networks-1"}) {
    const std::string svg = read_file(folder_ / "out/figures" / (std::string(figure) + ".svg"));
    EXPECT_THAT(svg, AnyOf(HasSubstr("it's \"50%s\" a_b^{c}\\d"), HasSubstr("it&#39;s &quot;50%s&quot; a_b^{c}\\d"),
                           HasSubstr("it's &quot;50%s&quot; a_b^{c}\\d")))
        << figure;
  }
  EXPECT_THAT(read_file(folder_ / "out/figures/strategies-networks-1.svg"), HasSubstr("100% {/Bold}"));
}

TEST_F(ReportCommand, DoesNotLookForTracesOutsideOfItsSweep) {
  fs::create_directories(folder_ / "elsewhere");
  write("elsewhere/trace.json", "this is no JSON");
  std::string text = sweep(1000);
  for (std::size_t at; (at = text.find("\"cell\":\"1gbe-bsp-1\"")) != std::string::npos;)
    text.replace(at, 19, "\"cell\":\"../../../elsewhere\"");
  write("runs/before/cells.jsonl", text);
  EXPECT_EQ(report("before --html page.html").exit_code, 0);
}

TEST_F(ReportCommand, RefusesBracketsNestedDeeperThanAStackIs) {
  const std::string deep(400'000, '[');
  write("runs/before/cells.jsonl", R"({"record":"cell","cell":"a","config":{"x":)" + deep + "\n");
  CommandResult result = report("before");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("cells.jsonl, line 1: it is nested more than 64 deep"));
  fs::create_directories(folder_ / "runs/one");
  write("runs/one/records.jsonl", R"({"record":"run","options":)" + deep + std::string(400'000, ']') + "}\n");
  result = report("one");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("records.jsonl, line 1"));
  write("runs/before/cells.jsonl", sweep(1000));
  fs::create_directories(folder_ / "runs/before/cells/1gbe-bsp-1");
  write("runs/before/cells/1gbe-bsp-1/trace.json",
        R"({"traceEvents":[{"ph":"X","ts":1,"name":"x","args":{"a":)" + deep + std::string(400'000, ']') + "}}]}");
  result = report("before --html page.html");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("trace.json, line 1: brackets are nested more than 64 deep"));
}

TEST_F(ReportCommand, PrintsNothingThatATerminalObeys) {
  write("runs/before/cells.jsonl", sweep_named("\033]0;x\a\033[2J", "a\nb"));
  write("runs/before/sweep.json", R"({"title": "\u001b[31mred"})");
  const CommandResult result = report("before");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, Not(HasSubstr("\033")));
  EXPECT_THAT(result.output, HasSubstr("?]0;x??[2J"));
  EXPECT_THAT(result.output, HasSubstr("| a b "));
}

TEST_F(ReportCommand, ReadsRecordsWithBytesThatAreNoText) {
  std::string text = sweep(1000);
  for (std::size_t at; (at = text.find("\"cores\":2")) != std::string::npos;) text.replace(at, 9, "\"host\":\"a\xff\"");
  write("runs/before/cells.jsonl", text);
  for (const char* form : {"--md", "--csv", "--json", ""}) {
    const CommandResult result = report(std::string("before ") + form);
    EXPECT_EQ(result.exit_code, 0) << form << result.output;
    EXPECT_THAT(result.output, Not(HasSubstr("\xff"))) << form;
  }
}

}  // namespace
}  // namespace tutti
