#include "tutti/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "base/files.h"
#include "base/utf8.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "record/run_finder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Records : public testing::Test {
 protected:
  Records() : folder_(fs::temp_directory_path() / ("tutti-records-test-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "first");
    file_ = folder_ / "first" / kRecordsFile;
  }
  ~Records() override { remove_tree(folder_); }

  void write(const std::string& text) const { std::ofstream(file_) << text; }
  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (RecordReader reader(file_); reader.next();) all.push_back(reader.kind());
    return all;
  }
  /// What a record is after it was written and read.
  template <typename T>
  T through_file(const T& record) const {
    fs::remove(file_);
    {
      RecordWriter writer;
      writer.add_sink(json_lines(file_.string()));
      writer.add(record);
    }
    RecordReader reader(file_);
    T read;
    while (reader.next()) read = reader.template as<T>();
    return read;
  }

  fs::path folder_, file_;
};

TEST_F(Records, OfEveryKindAreReadAsTheyWereWritten) {
  RunRecord run;
  run.config = config_record({{"model", "unet"}, {"batch", 4}}, 2, "cpu");
  run.nodes = {{"n0", {0, 1}}};
  run.environment = this_environment("1.2.3");
  run.environment->others["gpu"] = {{"name", "x"}};
  run.launcher = "mpirun";
  run.resumed_at_step = 7;
  EXPECT_EQ(json(through_file(run)), json(run));
  EXPECT_EQ(run.config.get<RunConfig>().ranks, 2);
  EXPECT_EQ(run.config.get<RunConfig>().device_used, "cpu");

  PlanRecord plan;
  plan.plan.strategy = "bsp";
  plan.links = Links{};
  plan.search = SearchRecord{20, 1, {{"bsp", "", 0.5, {0.25, 0.5}, 0.375}, {"buckets", "--bucket-mb 4", 1, {}, 2}}};
  plan.remark = "a \"remark\"";
  EXPECT_EQ(json(through_file(plan)), json(plan));

  const ProgressRecord progress{100, 1, 250.5, 0.01, 0.75};
  EXPECT_EQ(json(through_file(progress)), json(progress));
  json expected = {{"step", 100}, {"epoch", 1}, {"data_per_s", 250.5}, {"lr", 0.01}, {"loss", 0.75}};
  EXPECT_EQ(json(progress), expected);
  ProgressRecord more = progress;
  more.loss_smoothed = 0.5;
  more.gradient_norm = 1.5;
  expected.update({{"loss_smoothed", 0.5}, {"gradient_norm", 1.5}});
  EXPECT_EQ(json(through_file(more)), expected);

  EpochRecord epoch;
  epoch.epoch = 2;
  epoch.step = 10;
  epoch.train_loss = 0.5;
  epoch.ranks = {{{1, 2, 3, 4, 5}, 6, 7, {0.5, 0.25, 0.125}}};
  epoch.stragglers = {0};
  epoch.nodes = {{{"n0", {0}}, 6, 1.5, 2.5, 3.5}};
  epoch.test = TestResults{10, 0.25, {{"dice", 0.5}, {"iou", 0.125}}};
  epoch.test_s = 5;
  epoch.step_s = {0.5, 0.25};
  EXPECT_EQ(json(through_file(epoch)), json(epoch));
  EXPECT_EQ(json(epoch).at("test_iou"), 0.125);

  StepBreakdown explain;
  explain.ranks.resize(2);
  explain.ranks[1].caused_s = 0.5;
  explain.transfers = {{"fc", Operation::all_gather, 40, 0.5, 0.25, 0.125}};
  EXPECT_EQ(json(through_file(explain)), json(explain));

  const CheckpointRecord checkpoint{3, "runs/a/checkpoints/step-3", 0.5};
  EXPECT_EQ(json(through_file(checkpoint)), json(checkpoint));

  const EndRecord end{true, 4, "no more disk"};
  EXPECT_EQ(json(through_file(end)), json(end));

  SummaryRecord summary;
  summary.train_s = 2;
  summary.test.metrics = {{"accuracy", 0}};
  EXPECT_TRUE(json(summary).at("test_accuracy").is_null());  // not tested
  EXPECT_FALSE(through_file(summary).is_tested);
  summary.is_tested = true;
  summary.per_rank = {{{1, 2, 3, 4, 5}, "abc", 6, 7, 8, {"rose/1.jpg"}}};
  summary.bad_samples = {"rose/1.jpg"};
  EXPECT_EQ(json(through_file(summary)), json(summary));
}

TEST_F(Records, WithNumbersThatAreNoneAreReadAsNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(through_file(ProgressRecord{1, 0, 1, 1, nan}).loss.value()));
  EXPECT_TRUE(
      std::isnan(through_file(ProgressRecord{1, 0, 1, 1, std::numeric_limits<double>::infinity()}).loss.value()));
  EpochRecord epoch;
  epoch.train_loss = nan;
  epoch.ranks = {{{1, 1, 1, 1, 1}, 4, nan, {}}};
  epoch.test = TestResults{4, nan, {{"accuracy", 0.25}}};
  const EpochRecord read = through_file(epoch);
  EXPECT_TRUE(std::isnan(read.train_loss.value()));
  EXPECT_TRUE(std::isnan(read.ranks.at(0).loss_sum));
  ASSERT_TRUE(read.test);
  EXPECT_TRUE(std::isnan(read.test->loss));
  EXPECT_EQ(read.test->metric("accuracy"), 0.25);
  EXPECT_TRUE(std::isnan(json::parse(json(epoch.ranks[0]).dump()).get<RankEpoch>().loss_sum));  // as ranks exchange it
  Cell cell;
  cell.epochs.emplace_back();
  cell.epochs[0].loss = nan;
  EXPECT_EQ(parse_cell(json(cell).dump()).epochs.at(0).loss, std::nullopt);
  EXPECT_THAT(read_file(file_), Not(HasSubstr("nan")));
}

TEST_F(Records, AreReadOnFromWhereAReaderCameTo) {
  write("{\"record\":\"progress\",\"time\":5.5,\"step\":1}\n{\"record\":\"progress\",\"step\":2}");
  RecordReader first(file_);
  ASSERT_TRUE(first.next());
  EXPECT_EQ(first.time_s(), 5.5);
  const RecordPlace place = first.place();
  ASSERT_TRUE(first.next());
  EXPECT_FALSE(first.is_whole());
  EXPECT_EQ(first.place().lines, 1u) << "a line without its end is not behind it";
  std::ofstream(file_, std::ios::app) << "\nnonsense\n";
  RecordReader second(file_, place);
  ASSERT_TRUE(second.next());
  EXPECT_EQ(second.as<ProgressRecord>().step, 2);
  EXPECT_EQ(second.time_s(), 0) << "it has none";
  EXPECT_THAT(error_of([&] { second.next(); }), HasSubstr("line 3"));
}

/// A run and a sweep of two ranks, as version 0.1 wrote them.
TEST_F(Records, OfOlderVersionsAreRead) {
  std::map<std::string, int> counts;
  for (RecordReader reader(TUTTI_OLD_RECORDS "/run_of_0.1.jsonl"); reader.next();) {
    ++counts[reader.kind()];
    if (reader.is<RunRecord>()) {
      const auto run = reader.as<RunRecord>();
      const RunConfig& config = run.parsed;
      EXPECT_EQ(config.model, "mnist-cnn");
      EXPECT_EQ(config.batch, 8);
      EXPECT_EQ(config.ranks, 2);
      EXPECT_EQ(run.config.at("fusion_bytes"), 134217728);
      EXPECT_EQ(run.nodes.at(0).ranks, (std::vector<int>{0, 1}));
      EXPECT_EQ(run.environment.value().tutti, "0.1.0");
    } else if (reader.is<PlanRecord>()) {
      const auto plan = reader.as<PlanRecord>();
      EXPECT_EQ(plan.plan.slots.size(), 8U);
      EXPECT_EQ(plan.profile.gradients.size(), 8U);
      ASSERT_TRUE(plan.links && plan.search);
      EXPECT_EQ(plan.search->candidates.at(static_cast<std::size_t>(plan.search->chosen)).settings, "--fusion-mb 128");
    } else if (reader.is<ProgressRecord>()) {
      EXPECT_FALSE(reader.as<ProgressRecord>().loss);
      EXPECT_GT(reader.as<ProgressRecord>().data_per_s, 0);
    } else if (reader.is<EpochRecord>()) {
      const auto epoch = reader.as<EpochRecord>();
      EXPECT_EQ(epoch.ranks.size(), 2U);
      EXPECT_EQ(epoch.step_s.size(), 20U);
      EXPECT_EQ(epoch.test.value().samples, 50);
    } else if (reader.is<StepBreakdown>()) {
      EXPECT_EQ(reader.as<StepBreakdown>().transfers.size(), 6U);
    } else if (reader.is<CheckpointRecord>()) {
      EXPECT_EQ(reader.as<CheckpointRecord>().step, 100);
    } else if (reader.is<SummaryRecord>()) {
      const auto summary = reader.as<SummaryRecord>();
      EXPECT_EQ(summary.steps, 160);
      EXPECT_EQ(summary.transport, "shm");
      EXPECT_EQ(summary.test.metric("accuracy"), 0.78);
      EXPECT_EQ(summary.per_rank.size(), 2U);
    }
  }
  EXPECT_EQ(
      counts,
      (std::map<std::string, int>{
          {"run", 1}, {"epoch", 8}, {"progress", 4}, {"checkpoint", 1}, {"plan", 1}, {"explain", 1}, {"summary", 1}}));
}

/// No name has changed its meaning, or is lost, when an old record is read and written again.
TEST_F(Records, OfOlderVersionsAreWrittenWithTheSameNames) {
  const auto written_again = [](const RecordReader& reader) -> json {
    if (reader.is<RunRecord>()) return reader.as<RunRecord>();
    if (reader.is<PlanRecord>()) return reader.as<PlanRecord>();
    if (reader.is<ProgressRecord>()) return reader.as<ProgressRecord>();
    if (reader.is<EpochRecord>()) return reader.as<EpochRecord>();
    if (reader.is<StepBreakdown>()) return reader.as<StepBreakdown>();
    if (reader.is<CheckpointRecord>()) return reader.as<CheckpointRecord>();
    if (reader.is<SummaryRecord>()) return reader.as<SummaryRecord>();
    return reader.as<Cell>();
  };
  int records = 0;
  for (const char* file : {TUTTI_OLD_RECORDS "/run_of_0.1.jsonl", TUTTI_OLD_RECORDS "/cells_of_0.1.jsonl"}) {
    std::ifstream lines(file);
    for (RecordReader reader(file); reader.next(); ++records) {
      std::string line;
      std::getline(lines, line);
      json old = json::parse(line);
      json now = written_again(reader);
      now[kKindKey] = old.at(kKindKey);
      now[kTimeKey] = old.at(kTimeKey);
      EXPECT_EQ(now, old) << json::diff(old, now).dump(1);
    }
  }
  EXPECT_EQ(records, 20);
}

TEST_F(Records, AreReadWithoutAHalfWrittenLastLine) {
  write("{\"record\":\"run\"}\n{\"record\":\"epoch\"}\n{\"record\":\"summ");
  EXPECT_THAT(kinds(), ElementsAre("run", "epoch"));
  write("{\"record\":\"run\"}\n{\"record\":\"epoch\"}");  // only the newline is missing
  EXPECT_THAT(kinds(), ElementsAre("run", "epoch"));
  write("");
  EXPECT_THAT(kinds(), ElementsAre());
}

TEST_F(Records, NameTheLineThatIsDamaged) {
  for (const char* line :
       {"{\"record\":\"ep", "[1, 2]", "", "{\"step\":1}", "{\"record\":7}", "{\"a\":{\"record\":\"run\"}}"}) {
    write(std::string("{\"record\":\"run\"}\n") + line + "\n{\"record\":\"epoch\"}\n");
    EXPECT_THAT(error_of([&] { kinds(); }), HasSubstr("records.jsonl, line 2: this is not a record")) << line;
  }
  write("{\"record\":\"run\",\"config\":{\"batch\":\"many\"}}\n");
  EXPECT_THAT(error_of([&] {
                RecordReader reader(file_);
                reader.next();
                reader.as<RunRecord>();
              }),
              AllOf(HasSubstr("records.jsonl, line 1: "), HasSubstr("its \"batch\" is 'many'; it should be a number")));
  write("{\"record\":\"run\"}\n{\"record\":\"progress\",\"step\":[]}\n");
  RecordReader reader(file_);
  reader.next();
  reader.next();
  EXPECT_THAT(error_of([&] { reader.as<ProgressRecord>(); }),
              AllOf(HasSubstr("records.jsonl, line 2: "), HasSubstr("its \"step\" is []; it should be a number")));
}

TEST_F(Records, NameADamagedPartInTextThatATerminalCanShow) {
  write("{\"record\": \"plan\", \"plan\": {\"strategy\": \"b\xED(p\"}}\n");
  const std::string error = error_of([&] {
    RecordReader reader(file_);
    reader.next();
    reader.as<PlanRecord>();
  });
  EXPECT_THAT(error, HasSubstr("its \"plan\" is damaged"));
  EXPECT_TRUE(is_utf8(error)) << error;
}

TEST_F(Records, AreAppendedAfterWhatAKilledProcessLeftWhole) {
  write("{\"record\":\"run\"}\n{\"record\":\"epo");
  RecordWriter writer;
  writer.add_sink(json_lines(file_.string()));
  EXPECT_THAT(kinds(), ElementsAre("run"));
  writer.add(CheckpointRecord{});
  EXPECT_THAT(kinds(), ElementsAre("run", "checkpoint"));
}

TEST_F(Records, GoToEverySink) {
  struct Count : RecordSink {
    explicit Count(int& losses) : losses(losses) {}
    void add(const Record& record, double) override {
      losses += std::holds_alternative<ProgressRecord>(record) ? 1 : 0;
    }
    int& losses;
  };
  int losses = 0;
  RecordWriter writer;
  writer.add(RunRecord{});  // to nobody
  writer.add_sink(json_lines(file_.string()));
  writer.add_sink(std::make_unique<Count>(losses));
  writer.add(ProgressRecord{});
  writer.add(CheckpointRecord{});
  EXPECT_EQ(losses, 1);
  EXPECT_THAT(kinds(), ElementsAre("progress", "checkpoint"));
}

TEST_F(Records, HoldTextsThatAreNone) {
  EXPECT_EQ(through_file(CheckpointRecord{1, "runs/\xff", 0}).folder, "runs/\uFFFD");
}

TEST_F(Records, AreFoundByNameFolderOrFile) {
  write("");
  const RunFinder finder = run_finder();
  EXPECT_EQ(finder.require("first", folder_), file_);
  EXPECT_EQ(finder.require((folder_ / "first").string(), "elsewhere"), file_);
  EXPECT_EQ(finder.require(file_.string(), "elsewhere"), file_);
  EXPECT_THAT(error_of([&] { finder.require("frist", folder_); }), HasSubstr("did you mean 'first'?"));
  EXPECT_THAT(error_of([&] { finder.require("first", "elsewhere"); }), HasSubstr("no run 'first'"));
  fs::create_directories(folder_ / "sweep");
  std::ofstream(folder_ / "sweep" / kSweepFile) << "{}";
  EXPECT_EQ(finder.find("sweep", folder_), fs::path());
  EXPECT_EQ(run_or_sweep_finder().require("sweep", folder_), folder_ / "sweep" / kCellsFile);
}

TEST(Breakdowns, AreAveragedPartByPart) {
  RankBreakdown a, b;
  a.compute_s = 1;
  b.compute_s = 2;
  b.caused_s = 4;
  EXPECT_EQ(mean_of({a, b}).compute_s, 1.5);
  EXPECT_EQ(mean_of({a, b}).caused_s, 2);
  EXPECT_EQ(mean_of({}).compute_s, 0);
  EXPECT_EQ((b /= 4).caused_s, 1);
}

}  // namespace
}  // namespace tutti
