// The names that members of records have in JSON.
#include "tutti/records.h"

#include <limits>

#include "record/schemas.h"

namespace tutti {

using nlohmann::json;

namespace {

/// The members of a RankBreakdown, all of which are times.
const std::vector<std::pair<const char*, double RankBreakdown::*>>& parts() {
  static const std::vector<std::pair<const char*, double RankBreakdown::*>> members = {
      {"step_s", &RankBreakdown::step_s},
      {"compute_s", &RankBreakdown::compute_s},
      {"data_wait_s", &RankBreakdown::data_wait_s},
      {"optimizer_s", &RankBreakdown::optimizer_s},
      {"slowest_rank_s", &RankBreakdown::slowest_rank_s},
      {"startup_s", &RankBreakdown::startup_s},
      {"bandwidth_s", &RankBreakdown::bandwidth_s},
      {"scheduling_s", &RankBreakdown::scheduling_s},
      {"other_s", &RankBreakdown::other_s},
      {"comm_s", &RankBreakdown::comm_s},
      {"caused_s", &RankBreakdown::caused_s}};
  return members;
}

template <typename T>
Schema<T> with_rank_times() {
  return Schema<T>()
      .add("train_s", &T::train_s)
      .add("comm_s", &T::comm_s)
      .add("comm_exposed_s", &T::comm_exposed_s)
      .add("data_wait_s", &T::data_wait_s)
      .add("test_s", &T::test_s);
}

template <typename T>
Schema<T> with_node_ranks() {
  return Schema<T>().add("host", &T::host).add("ranks", &T::ranks);
}

/// "test_samples", "test_loss" and "test_NAME": reads one of them. False where it is none, or null: not tested.
bool read_test(JsonText& text, const std::string& key, TestResults& to) {
  if (key.rfind("test_", 0) != 0) {
    text.skip();
    return false;
  }
  const std::optional<double> number = number_at(text, key);
  const std::string name = key.substr(5);
  if (name == "loss")
    to.loss = number.value_or(std::numeric_limits<double>::quiet_NaN());
  else if (number && name == "samples")
    to.samples = static_cast<int64_t>(*number);
  else if (number)
    to.metrics.emplace_back(name, *number);
  return number.has_value();
}

void write_test(json& record, const TestResults& results, bool is_tested) {
  const auto put = [&](const std::string& name, const json& value) {
    record["test_" + name] = is_tested ? value : json();
  };
  put("samples", results.samples);
  put("loss", results.loss);
  for (const auto& [name, value] : results.metrics) put(name, value);
}

}  // namespace

const Schema<Environment>& schema(const Environment*) {
  static const auto result =
      Schema<Environment>()
          .add("tutti", &Environment::tutti, Rule::if_any)
          .add("commit", &Environment::commit, Rule::if_any)
          .add("build", &Environment::build, Rule::if_any)
          .add("compiler", &Environment::compiler, Rule::if_any)
          .add("host", &Environment::host, Rule::if_any)
          .add("cpu", &Environment::cpu, Rule::if_any)
          .add("cores", &Environment::cores, Rule::if_any)
          .add("libtorch", &Environment::libtorch, Rule::if_any)
          .others(
              [](JsonText& text, const std::string& key, Environment& to) { read_value(text, key, to.others[key]); },
              [](json& record, const std::string&, const Environment& from) { record.update(from.others); });
  return result;
}

const Schema<NodeRanks>& schema(const NodeRanks*) {
  static const auto result = with_node_ranks<NodeRanks>();
  return result;
}

const Schema<RunConfig>& schema(const RunConfig*) {
  static const auto result = Schema<RunConfig>()
                                 .add("model", &RunConfig::model)
                                 .add("data", &RunConfig::data)
                                 .add("strategy", &RunConfig::strategy)
                                 .add("wire", &RunConfig::wire)
                                 .add("transport", &RunConfig::transport)
                                 .add("precision", &RunConfig::precision)
                                 .add("optimizer", &RunConfig::optimizer)
                                 .add("device", &RunConfig::device)
                                 .add("device_used", &RunConfig::device_used)
                                 .add("batch", &RunConfig::batch)
                                 .add("accumulate", &RunConfig::accumulate)
                                 .add("ranks", &RunConfig::ranks)
                                 .add("servers", &RunConfig::servers)
                                 .add("workers", &RunConfig::workers)
                                 .add("threads", &RunConfig::threads)
                                 .add("width", &RunConfig::width)
                                 .add("depth", &RunConfig::depth)
                                 .add("tokens", &RunConfig::tokens)
                                 .add("bucket_bytes", &RunConfig::bucket_bytes)
                                 .add("fusion_bytes", &RunConfig::fusion_bytes)
                                 .add("partition_bytes", &RunConfig::partition_bytes)
                                 .add("credit_bytes", &RunConfig::credit_bytes)
                                 .add("clip_norm", &RunConfig::clip_norm)
                                 .add("link_gbps", &RunConfig::link_gbps)
                                 .add("link_startup_us", &RunConfig::link_startup_us)
                                 .add("by_node", &RunConfig::by_node);
  return result;
}

json config_record(json options, int ranks, const std::string& device_used) {
  options["ranks"] = ranks;
  options["device_used"] = device_used;
  return options;
}

const Schema<RunRecord>& schema(const RunRecord*) {
  static const auto result = Schema<RunRecord>()
                                 .add("config", &RunRecord::config)
                                 .add("nodes", &RunRecord::nodes)
                                 .add("environment", &RunRecord::environment)
                                 .add("launcher", &RunRecord::launcher)
                                 .add("resumed_at_step", &RunRecord::resumed_at_step);
  return result;
}

const Schema<TriedPlan>& schema(const TriedPlan*) {
  static const auto result = Schema<TriedPlan>()
                                 .add("strategy", &TriedPlan::strategy)
                                 .add("settings", &TriedPlan::settings)
                                 .add("predicted_s", &TriedPlan::predicted_s)
                                 .add("measured_s", &TriedPlan::measured_s)
                                 .add("step_s", &TriedPlan::step_s);
  return result;
}

const Schema<SearchRecord>& schema(const SearchRecord*) {
  static const auto result = Schema<SearchRecord>()
                                 .add("steps", &SearchRecord::steps)
                                 .add("chosen", &SearchRecord::chosen)
                                 .add("candidates", &SearchRecord::candidates);
  return result;
}

const Schema<PlanRecord>& schema(const PlanRecord*) {
  static const auto result = Schema<PlanRecord>()
                                 .add("profile", &PlanRecord::profile, Rule::required)
                                 .add("plan", &PlanRecord::plan, Rule::required)
                                 .add("step", &PlanRecord::step)
                                 .add("links", &PlanRecord::links)
                                 .add("search", &PlanRecord::search)
                                 .add("remark", &PlanRecord::remark, Rule::if_any);
  return result;
}

const Schema<ProgressRecord>& schema(const ProgressRecord*) {
  static const auto result = Schema<ProgressRecord>()
                                 .add("step", &ProgressRecord::step)
                                 .add("epoch", &ProgressRecord::epoch)
                                 .add("data_per_s", &ProgressRecord::data_per_s)
                                 .add("lr", &ProgressRecord::lr)
                                 .add("loss", &ProgressRecord::loss, Rule::null_is_nan);
  return result;
}

const Schema<RankEpoch>& schema(const RankEpoch*) {
  static const auto result = with_rank_times<RankEpoch>()
                                 .add("samples", &RankEpoch::samples)
                                 .add("loss_sum", &RankEpoch::loss_sum, Rule::null_is_nan);
  return result;
}

const Schema<NodeEpoch>& schema(const NodeEpoch*) {
  static const auto result = with_node_ranks<NodeEpoch>()
                                 .add("samples", &NodeEpoch::samples)
                                 .add("data_per_s", &NodeEpoch::data_per_s)
                                 .add("train_s", &NodeEpoch::train_s)
                                 .add("comm_exposed_s", &NodeEpoch::comm_exposed_s);
  return result;
}

const Schema<TestResults>& schema(const TestResults*) {
  static const auto result = Schema<TestResults>().others(
      read_test, [](json& record, const std::string&, const TestResults& from) { write_test(record, from, true); });
  return result;
}

const Schema<EpochRecord>& schema(const EpochRecord*) {
  static const auto result = Schema<EpochRecord>()
                                 .add("epoch", &EpochRecord::epoch)
                                 .add("step", &EpochRecord::step)
                                 .add("train_s", &EpochRecord::train_s)
                                 .add("data_per_s", &EpochRecord::data_per_s)
                                 .add("train_loss", &EpochRecord::train_loss, Rule::null_is_nan)
                                 .add("ranks", &EpochRecord::ranks)
                                 .add("nodes", &EpochRecord::nodes, Rule::if_any)
                                 .add("test_s", &EpochRecord::test_s)
                                 .add("step_s", &EpochRecord::step_s)
                                 .others(
                                     [](JsonText& text, const std::string& key, EpochRecord& to) {
                                       TestResults results = to.test.value_or(TestResults());
                                       if (read_test(text, key, results) || to.test) to.test = results;
                                     },
                                     [](json& record, const std::string&, const EpochRecord& from) {
                                       if (from.test) write_test(record, *from.test, true);
                                     });
  return result;
}

const Schema<RankBreakdown>& schema(const RankBreakdown*) {
  static const auto result = [] {
    Schema<RankBreakdown> all;
    for (const auto& [name, member] : parts()) all.add(name, member);
    return all;
  }();
  return result;
}

const Schema<TransferBreakdown>& schema(const TransferBreakdown*) {
  static const auto result = Schema<TransferBreakdown>()
                                 .add("name", &TransferBreakdown::name)
                                 .add(
                                     "operation",
                                     [](JsonText& text, const std::string& key, TransferBreakdown& to) {
                                       const std::string name = text_at(text, key);
                                       for (const Operation operation : kOperations)
                                         if (name == word(operation)) to.operation = operation;
                                     },
                                     [](json& record, const std::string& key, const TransferBreakdown& from) {
                                       record[key] = word(from.operation);
                                     })
                                 .add("bytes", &TransferBreakdown::bytes)
                                 .add("busy_s", &TransferBreakdown::busy_s)
                                 .add("skew_s", &TransferBreakdown::skew_s)
                                 .add("exposed_s", &TransferBreakdown::exposed_s);
  return result;
}

const Schema<StepBreakdown>& schema(const StepBreakdown*) {
  static const auto result = Schema<StepBreakdown>()
                                 .add("first_step", &StepBreakdown::first_step)
                                 .add("steps", &StepBreakdown::steps)
                                 .add("strategy", &StepBreakdown::strategy)
                                 .add("startup_s", &StepBreakdown::startup_s)
                                 .add("startup_from", &StepBreakdown::startup_from)
                                 .add("ranks", &StepBreakdown::ranks, Rule::required)
                                 .add("transfers", &StepBreakdown::transfers);
  return result;
}

const Schema<CheckpointRecord>& schema(const CheckpointRecord*) {
  static const auto result = Schema<CheckpointRecord>()
                                 .add("step", &CheckpointRecord::step)
                                 .add("folder", &CheckpointRecord::folder)
                                 .add("seconds", &CheckpointRecord::seconds);
  return result;
}

const Schema<RankSummary>& schema(const RankSummary*) {
  static const auto result = with_rank_times<RankSummary>()
                                 .add("weights_sha256", &RankSummary::weights_sha256)
                                 .add("peak_rss_bytes", &RankSummary::peak_rss_bytes)
                                 .add("optimizer_state_bytes", &RankSummary::optimizer_state_bytes)
                                 .add("steady_s", &RankSummary::steady_s);
  return result;
}

const Schema<SummaryRecord>& schema(const SummaryRecord*) {
  static const auto result = with_rank_times<SummaryRecord>()
                                 .add("model", &SummaryRecord::model)
                                 .add("data", &SummaryRecord::data)
                                 .add("ranks", &SummaryRecord::ranks)
                                 .add("strategy", &SummaryRecord::strategy)
                                 .add("strategy_used", &SummaryRecord::strategy_used)
                                 .add("transport", &SummaryRecord::transport)
                                 .add("nodes", &SummaryRecord::nodes)
                                 .add("device", &SummaryRecord::device)
                                 .add("precision", &SummaryRecord::precision)
                                 .add("steps", &SummaryRecord::steps)
                                 .add("epochs", &SummaryRecord::epochs)
                                 .add("warm_up_steps", &SummaryRecord::warm_up_steps)
                                 .add("samples", &SummaryRecord::samples)
                                 .add("samples_per_s", &SummaryRecord::samples_per_s)
                                 .add("samples_per_s_steady", &SummaryRecord::samples_per_s_steady)
                                 .add("weights_sha256", &SummaryRecord::weights_sha256)
                                 .add("peak_rss_bytes", &SummaryRecord::peak_rss_bytes)
                                 .add("optimizer_state_bytes", &SummaryRecord::optimizer_state_bytes)
                                 .add("run_folder", &SummaryRecord::run_folder)
                                 .add("config", &SummaryRecord::config)
                                 .add("environment", &SummaryRecord::environment)
                                 .add("per_rank", &SummaryRecord::per_rank)
                                 .others(
                                     [](JsonText& text, const std::string& key, SummaryRecord& to) {
                                       if (read_test(text, key, to.test)) to.is_tested = true;
                                     },
                                     [](json& record, const std::string&, const SummaryRecord& from) {
                                       write_test(record, from.test, from.is_tested);
                                     });
  return result;
}

#define TUTTI_WRITE_AND_READ(Struct)                                             \
  void to_json(json& to, const Struct& from) { to = schema(&from).write(from); } \
  void from_json(const json& from, Struct& to) { to = read_text<Struct>(from.dump()); }
TUTTI_WRITE_AND_READ(Environment)
TUTTI_WRITE_AND_READ(RunConfig)
TUTTI_WRITE_AND_READ(RankEpoch)
TUTTI_WRITE_AND_READ(RankSummary)
TUTTI_WRITE_AND_READ(TestResults)
TUTTI_WRITE_AND_READ(RunRecord)
TUTTI_WRITE_AND_READ(PlanRecord)
TUTTI_WRITE_AND_READ(ProgressRecord)
TUTTI_WRITE_AND_READ(EpochRecord)
TUTTI_WRITE_AND_READ(StepBreakdown)
TUTTI_WRITE_AND_READ(CheckpointRecord)
TUTTI_WRITE_AND_READ(SummaryRecord)
#undef TUTTI_WRITE_AND_READ

RankBreakdown& RankBreakdown::operator/=(double count) {
  for (const auto& [name, member] : parts()) this->*member /= count;
  return *this;
}

RankBreakdown mean_of(const std::vector<RankBreakdown>& ranks) {
  RankBreakdown mean;
  for (const RankBreakdown& rank : ranks)
    for (const auto& [name, member] : parts()) mean.*member += rank.*member / static_cast<double>(ranks.size());
  return mean;
}

}  // namespace tutti
