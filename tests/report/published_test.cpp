// For each published study: read its figures, take the cells through records, lay out the table, and find every figure
// in its place. The file is taken apart here a second time, by other means. Where the authors' texts are at hand, their
// import must say the same.
#include "published.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <sstream>

#include "report/table_forms.h"

namespace tutti {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line + ",");
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

std::vector<Row> rows_of(const std::string& name) {
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::istringstream stream(read_file(test::published_figures(name)));
  for (std::string line; std::getline(stream, line);) {
    if (line[0] == '#') continue;
    // Only the last column, a node list, has commas of its own.
    const std::size_t quote = line.find('"');
    std::vector<std::string> fields = split(line.substr(0, quote));
    if (quote != std::string::npos) fields.back() = line.substr(quote + 1, line.size() - quote - 2);
    if (columns.empty()) {
      columns = fields;
      continue;
    }
    EXPECT_EQ(fields.size(), columns.size()) << line;
    Row row;
    for (std::size_t i = 0; i < columns.size() && i < fields.size(); ++i) row[columns[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

std::vector<Cell> cells_of(const std::string& name, std::vector<std::string>* notes = nullptr) {
  return test::through_records(name, read_file(test::published_figures(name)), notes);
}

int digits_behind_point(const std::string& number) {
  const std::size_t point = number.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(number.size() - point - 1);
}

/// Equal after rounding to the fewer digits of both.
::testing::AssertionResult same_figure(const std::string& shown, const std::string& published) {
  if (shown.empty() || published.empty())
    return shown == published
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << "shown '" << shown << "', published '" << published << "'";
  const int digits = std::min(digits_behind_point(shown), digits_behind_point(published));
  const double unit = std::pow(10, -digits);
  if (std::abs(std::stod(shown) - std::stod(published)) <= unit * 0.5001) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "shown " << shown << ", published " << published;
}

std::string shown(const Table& table, std::size_t row, const std::string& key) {
  return table.rows.at(row).values.at(table.column(key)).text;
}

TEST(PublishedRankTimes, ComeBackRankByRank) {
  const Table table = rank_times_table(cells_of("unet_gpus_workers.csv"));
  const std::vector<Row> rows = rows_of("unet_gpus_workers.csv");
  ASSERT_EQ(rows.size(), 80u);  // 4 numbers of workers × (1 + 2 + 3 + 4) ranks × 2 epochs
  ASSERT_EQ(table.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const char* key : {"model", "batch", "workers", "ranks", "epoch", "rank", "train_s", "comm_s"})
      EXPECT_EQ(shown(table, i, key), rows[i].at(key)) << i << " " << key;
}

/// The rows of one run: its rates by step and its epochs.
struct List {
  Row run;
  std::multimap<std::string, std::string> rates;
  std::vector<Row> epochs;
};

std::vector<List> lists_of(const std::string& name) {
  std::vector<List> lists;
  std::string last;
  for (const Row& row : rows_of(name)) {
    const std::string run = row.at("model") + "|" + row.at("ranks") + "|" + row.at("hosts");
    if (run != last) lists.push_back({row, {}, {}});
    last = run;
    if (row.at("step").empty())
      lists.back().epochs.push_back(row);
    else
      lists.back().rates.emplace(row.at("step"), row.at("data_per_s"));
  }
  return lists;
}

/// "lm6" for "lm6:2", "lm1:1, lm6:1" for "lm1:1 lm6:1".
std::string shown_hosts(std::string hosts) {
  const std::size_t space = hosts.find(' ');
  return space == std::string::npos ? hosts.substr(0, hosts.find(':')) : hosts.insert(space, ",");
}

/// The figure that the runs of one rank have for the slowest of these hosts.
std::string baseline_of(const std::vector<List>& lists, const Row& run) {
  std::string slowest;
  for (const List& list : lists) {
    const std::string host = list.run.at("hosts").substr(0, list.run.at("hosts").find(':'));
    if (list.run.at("ranks") != "1" || list.run.at("model") != run.at("model")) continue;
    if (run.at("hosts").find(host + ":") == std::string::npos) continue;
    const std::string& rate = list.run.at("samples_per_s");
    if (slowest.empty() || std::stod(rate) < std::stod(slowest)) slowest = rate;
  }
  return slowest;
}

void expect_lists_come_back(const std::string& name, std::size_t count) {
  const std::vector<Cell> cells = cells_of(name);
  std::vector<std::string> notes;
  const Table rates = step_rates_table(group_cells(cells), notes), epochs = epochs_table(cells);
  const std::vector<List> lists = lists_of(name);
  ASSERT_EQ(lists.size(), count);
  ASSERT_EQ(rates.rows.size(), count);
  std::size_t epoch_row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const List& list = lists[i];
    SCOPED_TRACE(list.run.at("model") + " on " + list.run.at("hosts"));
    EXPECT_EQ(shown(rates, i, "model"), list.run.at("model"));
    EXPECT_EQ(shown(rates, i, "ranks"), list.run.at("ranks"));
    EXPECT_EQ(shown(rates, i, "node"), shown_hosts(list.run.at("hosts")));
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
    EXPECT_EQ(filled, 0u);  // no figure that the file has not
    EXPECT_TRUE(same_figure(shown(rates, i, "rate"), list.run.at("samples_per_s")));
    EXPECT_TRUE(same_figure(shown(rates, i, "speedup"), list.run.at("speedup")));
    if (!list.run.at("speedup").empty()) {
      EXPECT_TRUE(same_figure(shown(rates, i, "baseline"), baseline_of(lists, list.run)));
    }
    for (const Row& epoch : list.epochs) {
      EXPECT_EQ(shown(epochs, epoch_row, "epoch"), epoch.at("epoch"));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "train_s"), epoch.at("train_s")));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "test_s"), epoch.at("test_s")));
      EXPECT_TRUE(same_figure(shown(epochs, epoch_row, "accuracy"), epoch.at("test_accuracy")));
      EXPECT_EQ(shown(epochs, epoch_row, "node"), shown(rates, i, "node"));
      ++epoch_row;
    }
  }
  EXPECT_EQ(epoch_row, epochs.rows.size());
  // 198.38 / 120.7 is 1.644 and not 1.648, 305.78 / 81.82 is 3.737 and not 3.73: near enough to say nothing.
  EXPECT_THAT(notes, ::testing::IsEmpty());
}

TEST(PublishedStepRates, ComeBackOfOneNode) { expect_lists_come_back("resnet_single_node.csv", 12); }

TEST(PublishedStepRates, ComeBackOfUnequalNodes) { expect_lists_come_back("resnet_transformer_two_nodes.csv", 36); }

TEST(PublishedStepRates, AreOfEveryModelOnEveryNodeThatWasTried) {
  std::vector<std::string> notes;
  const Table table = step_rates_table(group_cells(cells_of("resnet_transformer_two_nodes.csv")), notes);
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
}

void expect_strategies_come_back(const std::string& name, std::size_t count) {
  std::vector<std::string> notes;
  const Table table = strategies_table(group_cells(cells_of(name, &notes)));
  EXPECT_THAT(notes, Contains(HasSubstr(name + ": figures of Shi et al. 2020")));
  EXPECT_EQ(table.rows.size(), count);
  std::map<std::string, std::size_t> places;  // of rows
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(shown(table, i, "source"), "published");
    places[shown(table, i, "model") + shown(table, i, "batch") + shown(table, i, "network") +
           shown(table, i, "strategy")] = i;
  }
  EXPECT_EQ(places.size(), count);
  std::map<std::string, std::string> baselines;
  std::size_t figures = 0;
  for (const Row& row : rows_of(name)) {
    const std::string setting = row.at("model") + row.at("batch") + row.at("network");
    if (row.at("strategy").empty()) {
      EXPECT_EQ(row.at("ranks"), "1");
      baselines[setting] = row.at("samples_per_s");
      continue;
    }
    SCOPED_TRACE(setting + row.at("strategy") + row.at("ranks"));
    const std::size_t i = places.at(setting + row.at("strategy"));
    EXPECT_TRUE(same_figure(shown(table, i, "baseline"), baselines.at(setting)));
    const std::string value = shown(table, i, "ranks_" + row.at("ranks"));
    const std::size_t sign = value.find(" ± ");
    ASSERT_NE(sign, std::string::npos);
    EXPECT_TRUE(same_figure(value.substr(0, sign), row.at("samples_per_s")));
    EXPECT_TRUE(same_figure(value.substr(sign + 4), row.at("deviation")));
    const double efficiency =
        100 * std::stod(row.at("samples_per_s")) / (std::stod(row.at("ranks")) * std::stod(baselines.at(setting)));
    EXPECT_NEAR(std::stod(shown(table, i, "efficiency_" + row.at("ranks"))), efficiency, 0.051);
    ++figures;
  }
  EXPECT_EQ(figures, count * 4);
}

TEST(PublishedStrategies, ComeBackFigureByFigure) {
  expect_strategies_come_back("strategies_networks.csv", 42);             // 2 models × 3 networks × 7 strategies
  expect_strategies_come_back("strategies_networks_bert_large.csv", 21);  // one model
}

TEST(PublishedNodes, ComeBackRowByRowWithAverages) {
  std::vector<std::string> import_notes, notes;
  const std::vector<Cell> cells = cells_of("mnist_bigmnist_cluster.csv", &import_notes);
  const Table table = nodes_table(cells, notes);
  const std::vector<Row> rows = rows_of("mnist_bigmnist_cluster.csv");
  ASSERT_EQ(rows.size(), 7u + 54u);
  ASSERT_EQ(table.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    SCOPED_TRACE(i);
    for (const char* key : {"data", "nodes", "epochs", "batch", "steps", "node_list"})
      EXPECT_EQ(shown(table, i, key), row.at(key));
    EXPECT_EQ(std::stoi(shown(table, i, "ranks")) * std::stoi(row.at("nodes")), std::stoi(row.at("ranks")));
    int hours = 0, minutes = 0, seconds = 0;
    ASSERT_EQ(std::sscanf(shown(table, i, "run_s").c_str(), "%d:%d:%d", &hours, &minutes, &seconds), 3);
    EXPECT_EQ(std::to_string(hours * 3600 + minutes * 60 + seconds), row.at("run_s"));
    EXPECT_TRUE(same_figure(shown(table, i, "speedup"), row.at("speedup")));
    EXPECT_EQ(table.rows[i].is_summary, row.at("node_list") == "Avg");
  }
  // Where a study contradicts itself, it is shown as it is and a note says so.
  EXPECT_THAT(import_notes, Contains(HasSubstr("'gn[03-07-09]' is no node list of Slurm's")));
  EXPECT_THAT(import_notes, Contains(HasSubstr("'gn[03,05]' names 2 nodes, the row says 3")));
  EXPECT_THAT(notes, Contains(HasSubstr("states an average run time of 6:16:52; its rows give 5:54:46")));
  EXPECT_THAT(notes, Contains(HasSubstr("states a speed-up of 1.6; its own run times give 1.79")));
}

/// Cells as records, in an order of their own, without what tells the files apart.
std::vector<std::string> records_of(const std::vector<Cell>& cells) {
  std::vector<std::string> records;
  for (const Cell& cell : cells) {
    nlohmann::json record = cell;
    record.erase("sweep");
    record.erase("cell");
    records.push_back(record.dump());
  }
  std::sort(records.begin(), records.end());
  return records;
}

struct Study {
  std::string text;
  std::vector<std::string> figures;
};

std::vector<Study> studies_at_hand() {
  const std::vector<Study> all = {
      {"unet_gpus_workers.txt", {"unet_gpus_workers.csv"}},
      {"resnet_single_node.md", {"resnet_single_node.csv"}},
      {"resnet_transformer_two_nodes.md", {"resnet_transformer_two_nodes.csv"}},
      {"strategies_networks.md", {"strategies_networks.csv"}},
      {"strategies_networks_all.md", {"strategies_networks.csv", "strategies_networks_bert_large.csv"}},
      {"mnist_bigmnist_cluster.md", {"mnist_bigmnist_cluster.csv"}}};
  std::vector<Study> found;
  for (const Study& study : all)
    if (std::filesystem::exists(test::published_folder() / study.text)) found.push_back(study);
  return found;
}

class PublishedStudy : public ::testing::TestWithParam<Study> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PublishedStudy);
INSTANTIATE_TEST_SUITE_P(AtHand, PublishedStudy, ::testing::ValuesIn(studies_at_hand()),
                         [](const auto& study) { return study.param.text.substr(0, study.param.text.find('.')); });

TEST_P(PublishedStudy, HasTheFiguresOfItsText) {
  const Study& study = GetParam();
  std::vector<Cell> figures;
  for (const std::string& name : study.figures)
    for (const Cell& cell : cells_of(name)) figures.push_back(cell);
  const std::vector<Cell> cells = test::through_records(study.text, read_file(test::published_folder() / study.text));
  EXPECT_EQ(records_of(cells), records_of(figures));
}

TEST(PublishedTexts, AreAtHandWhereDataIsRequired) {
  const char* const required = std::getenv("TUTTI_REQUIRE_DATA");
  if (required != nullptr && std::string(required) == "1") {
    EXPECT_EQ(studies_at_hand().size(), 6u);
  }
}

}  // namespace
}  // namespace tutti
