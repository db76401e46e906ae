// For each published text: import it, take its cells through records, lay out the table, and find every figure of the
// text in its place. The text is taken apart here a second time, by other means.
#include "published.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

int digits_behind_point(const std::string& number) {
  const std::size_t point = number.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(number.size() - point - 1);
}

/// Equal after rounding to the fewer digits of both.
::testing::AssertionResult same_figure(const std::string& shown, const std::string& published) {
  const int digits = std::min(digits_behind_point(shown), digits_behind_point(published));
  const double unit = std::pow(10, -digits);
  if (std::abs(std::stod(shown) - std::stod(published)) <= unit * 0.5001) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "shown " << shown << ", published " << published;
}

std::string shown(const Table& table, std::size_t row, const std::string& key) {
  return table.rows.at(row).values.at(table.column(key)).text;
}

std::vector<std::string> figures(const std::string& content, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(content.begin(), content.end(), regex), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

TEST(PublishedRankTimes, ComeBackRankByRank) {
  TUTTI_PUBLISHED_TEXT(content, "unet_gpus_workers.txt");
  const Table table = rank_times_table(test::through_records("unet_gpus_workers.txt", content));
  const auto train = figures(content, "Training time: (\\S+) seconds");
  const auto comm = figures(content, "Communication time: (\\S+) seconds");
  ASSERT_EQ(train.size(), 80u);  // 4 numbers of workers × (1 + 2 + 3 + 4) ranks × 2 epochs
  ASSERT_EQ(table.rows.size(), train.size());
  std::size_t row = 0;
  for (const char* workers : {"1", "2", "4", "8"})
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int epoch = 1; epoch <= 2; ++epoch)
        for (int rank = 0; rank < ranks; ++rank, ++row) {
          EXPECT_EQ(shown(table, row, "model"), "U_Net");
          EXPECT_EQ(shown(table, row, "batch"), "16");
          EXPECT_EQ(shown(table, row, "workers"), workers);
          EXPECT_EQ(shown(table, row, "ranks"), std::to_string(ranks));
          EXPECT_EQ(shown(table, row, "epoch"), std::to_string(epoch));
          EXPECT_EQ(shown(table, row, "rank"), std::to_string(rank));
          EXPECT_EQ(shown(table, row, "train_s"), train[row]);
          EXPECT_EQ(shown(table, row, "comm_s"), comm[row]);
        }
}

/// One list of a published text of step rates: its heading, and the figures below it in order.
struct List {
  std::string heading;
  std::multimap<std::string, std::string> rates;  // by step
  std::vector<std::vector<std::string>> epochs;   // number, time, test time, accuracy
};

std::vector<List> lists_of(const std::string& content) {
  std::vector<List> lists;
  std::string heading;
  for (const std::string& line : lines_of(content)) {
    if (!line.empty() && line[0] == '#') heading = line;
    if (line.rfind("- ", 0) != 0) continue;
    if (lists.empty() || lists.back().heading != heading) lists.push_back({heading, {}, {}});
    const auto numbers = figures(line, "([0-9]+(?:\\.[0-9]+)?)");
    if (line.rfind("- Step", 0) == 0)
      lists.back().rates.emplace(numbers.at(0), numbers.at(1));
    else
      lists.back().epochs.push_back(numbers);
  }
  return lists;
}

void expect_lists_come_back(const std::string& name, const std::string& content, std::size_t count) {
  const std::vector<Cell> cells = test::through_records(name, content);
  std::vector<std::string> notes;
  const std::vector<Group> groups = group_cells(cells);
  const Table rates = step_rates_table(groups, notes), epochs = epochs_table(cells);
  const std::vector<List> lists = lists_of(content);
  ASSERT_EQ(lists.size(), count);
  ASSERT_EQ(rates.rows.size(), count);
  std::size_t epoch_row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const List& list = lists[i];
    SCOPED_TRACE(list.heading);
    std::size_t filled = 0;
    for (const TableColumn& column : rates.columns)
      if (column.key.rfind("step_", 0) == 0 && !shown(rates, i, column.key).empty()) ++filled;
    for (auto at = list.rates.begin(); at != list.rates.end(); at = list.rates.upper_bound(at->first)) {
      std::string all;
      for (auto same = at; same != list.rates.upper_bound(at->first); ++same)
        all += (all.empty() ? "" : " / ") + same->second;
      const std::string in_table = shown(rates, i, "step_" + at->first);
      if (all.find('/') == std::string::npos)
        EXPECT_TRUE(same_figure(in_table, all));
      else
        EXPECT_EQ(in_table, all);
      --filled;
    }
    EXPECT_EQ(filled, 0u);  // no figure that the text has not
    // "lm6-198.38-1.648x, baseline: 120.7": what the heading says of the list.
    std::smatch match;
    ASSERT_TRUE(
        std::regex_search(list.heading, match, std::regex("[- ]([0-9.]+)(?:-([0-9.]+)x, [Bb]aseline: ?([0-9.]+))?$")));
    EXPECT_TRUE(same_figure(shown(rates, i, "rate"), match[1]));
    if (match[2].matched) {
      EXPECT_TRUE(same_figure(shown(rates, i, "speedup"), match[2]));
      EXPECT_TRUE(same_figure(shown(rates, i, "baseline"), match[3]));  // found by rule, not read
    } else {
      EXPECT_EQ(shown(rates, i, "speedup"), "");
    }
    for (const auto& epoch : list.epochs) {
      EXPECT_EQ(shown(epochs, epoch_row, "epoch"), epoch.at(0));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "train_s"), epoch.at(1)));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "test_s"), epoch.at(2)));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "accuracy"), epoch.at(3)));
      EXPECT_EQ(shown(epochs, epoch_row, "node"), shown(rates, i, "node"));
      ++epoch_row;
    }
  }
  EXPECT_EQ(epoch_row, epochs.rows.size());
}

TEST(PublishedStepRates, ComeBackOfOneNode) {
  TUTTI_PUBLISHED_TEXT(content, "resnet_single_node.md");
  expect_lists_come_back("resnet_single_node.md", content, 12);
}

TEST(PublishedStepRates, ComeBackOfUnequalNodes) {
  TUTTI_PUBLISHED_TEXT(content, "resnet_transformer_two_nodes.md");
  expect_lists_come_back("resnet_transformer_two_nodes.md", content, 36);
}

TEST(PublishedStepRates, HaveModelRanksAndNodesOfTheirHeadings) {
  TUTTI_PUBLISHED_TEXT(content, "resnet_transformer_two_nodes.md");
  const std::vector<Cell> cells = test::through_records("two", content);
  std::vector<std::string> notes;
  const Table table = step_rates_table(group_cells(cells), notes);
  std::map<std::string, int> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    ++rows[shown(table, i, "model") + " " + shown(table, i, "data") + " " + shown(table, i, "batch") + " " +
           shown(table, i, "ranks") + " " + shown(table, i, "node")];
  for (const char* model : {"ResNet18", "ResNet50", "ResNet101"})
    for (const char* rest :
         {"1 lm1", "1 lm6", "2 lm1", "2 lm6", "3 lm1", "4 lm1", "2 lm1:1, lm6:1", "4 lm1:2, lm6:2", "5 lm1:3, lm6:2"})
      EXPECT_EQ(rows[std::string(model) + " MNIST 128 " + rest], 1) << model << " " << rest;
  for (const char* rest : {"1 lm1", "1 lm6", "2 lm1", "2 lm6", "3 lm1", "4 lm1", "4 lm1:2, lm6:2"})
    EXPECT_EQ(rows[std::string("Transformer SST5 128 ") + rest], 1) << rest;
  // 198.38 / 120.7 is 1.644 and not 1.648, 305.78 / 81.82 is 3.737 and not 3.73: near enough to say nothing.
  EXPECT_THAT(notes, ::testing::IsEmpty());
}

TEST(PublishedStrategies, ComeBackRowByRow) {
  TUTTI_PUBLISHED_TEXT(content, "strategies_networks.md");
  std::vector<std::string> notes;
  const std::vector<Cell> cells = test::through_records("strategies_networks.md", content, &notes);
  const Table table = strategies_table(group_cells(cells));
  EXPECT_THAT(notes, Contains(HasSubstr("its header names Baseline and 1 GPU")));
  std::size_t row = 0;
  for (const std::string& line : lines_of(content)) {
    if (line.rfind("| ResNet", 0) != 0 && line.rfind("| BERT", 0) != 0) continue;
    std::smatch match;
    ASSERT_TRUE(std::regex_match(
        line, match,
        std::regex("\\| (\\S+) \\| (\\d+) \\| ([^|]+) \\| (\\S+) \\| (\\S+) \\| (\\S+) \\+- (\\S+) \\| (\\S+) \\+- "
                   "(\\S+) \\| (\\S+) \\+- (\\S+) \\| (\\S+) \\+- (\\S+) \\| *")));
    SCOPED_TRACE(line);
    ASSERT_LT(row, table.rows.size());
    EXPECT_EQ(shown(table, row, "source"), "published");
    EXPECT_EQ(shown(table, row, "model"), match[1]);
    EXPECT_EQ(shown(table, row, "batch"), match[2]);
    EXPECT_EQ(shown(table, row, "network"), match[3]);
    EXPECT_EQ(shown(table, row, "strategy"), match[4]);
    EXPECT_TRUE(same_figure(shown(table, row, "baseline"), match[5]));
    std::size_t group = 6;
    for (const int ranks : {4, 8, 16, 32}) {
      const std::string value = shown(table, row, "ranks_" + std::to_string(ranks));
      const std::size_t sign = value.find(" ± ");
      ASSERT_NE(sign, std::string::npos);
      EXPECT_TRUE(same_figure(value.substr(0, sign), match[group]));
      EXPECT_TRUE(same_figure(value.substr(sign + 4), match[group + 1]));
      const double efficiency = 100 * std::stod(match[group]) / (ranks * std::stod(match[5]));
      EXPECT_NEAR(std::stod(shown(table, row, "efficiency_" + std::to_string(ranks))), efficiency, 0.051);
      group += 2;
    }
    ++row;
  }
  EXPECT_EQ(row, 42u);  // 2 models × 3 networks × 7 strategies
  EXPECT_EQ(table.rows.size(), row);
}

TEST(PublishedNodes, ComeBackRowByRowWithAverages) {
  TUTTI_PUBLISHED_TEXT(content, "mnist_bigmnist_cluster.md");
  std::vector<std::string> import_notes, notes;
  const std::vector<Cell> cells = test::through_records("mnist_bigmnist_cluster.md", content, &import_notes);
  const Table table = nodes_table(cells, notes);
  std::size_t row = 0;
  std::string data;
  for (const std::string& line : lines_of(content)) {
    if (line.rfind("# ", 0) == 0) data = line.substr(2, line.find(' ', 2) - 2);
    if (line.empty() || line[0] != '|' || line.find("#Nodes") != std::string::npos || line[1] == '-') continue;
    SCOPED_TRACE(line);
    ASSERT_LT(row, table.rows.size());
    std::string plain = line;
    plain.erase(std::remove(plain.begin(), plain.end(), '*'), plain.end());
    const auto fields = figures(plain, "\\|\\s*([^| ]+)\\s*(?=\\|)");
    ASSERT_EQ(fields.size(), 8u);
    EXPECT_EQ(shown(table, row, "data"), data);
    EXPECT_EQ(shown(table, row, "nodes"), fields[0]);
    EXPECT_EQ(shown(table, row, "ranks"), fields[1]);
    EXPECT_EQ(shown(table, row, "epochs"), fields[2]);
    EXPECT_EQ(shown(table, row, "batch"), fields[3]);
    EXPECT_EQ(shown(table, row, "steps"), fields[4]);
    EXPECT_EQ(shown(table, row, "run_s"), fields[5]);
    if (fields[6] == "-")
      EXPECT_EQ(shown(table, row, "speedup"), "");
    else
      EXPECT_TRUE(same_figure(shown(table, row, "speedup"), fields[6]));
    EXPECT_EQ(shown(table, row, "node_list"), fields[7]);
    EXPECT_EQ(table.rows[row].is_summary, fields[7] == "Avg");
    ++row;
  }
  EXPECT_EQ(row, 7u + 54u);
  EXPECT_EQ(table.rows.size(), row);
  // Where the text contradicts itself, it is shown as it is and a note says so.
  EXPECT_THAT(import_notes, Contains(HasSubstr("'gn[03-07-09]' is no node list of Slurm's")));
  EXPECT_THAT(import_notes, Contains(HasSubstr("'gn[03,05]' names 2 nodes, the row says 3")));
  EXPECT_THAT(notes, Contains(HasSubstr("states an average run time of 6:16:52; its rows give 5:54:46")));
  EXPECT_THAT(notes, Contains(HasSubstr("states a speed-up of 1.6; its own run times give 1.79")));
}

}  // namespace
}  // namespace tutti
