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
std::vector<Field<T>> rank_times() {
  return {{"train_s", &T::train_s},
          {"comm_s", &T::comm_s},
          {"comm_exposed_s", &T::comm_exposed_s},
          {"data_wait_s", &T::data_wait_s},
          {"test_s", &T::test_s}};
}

template <typename T>
std::vector<Field<T>> node_ranks() {
  return {{"host", &T::host}, {"ranks", &T::ranks}};
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
  using R = Environment;
  static const Schema<R> result = {
      {"tutti", &R::tutti, Rule::if_any},
      {"commit", &R::commit, Rule::if_any},
      {"build", &R::build, Rule::if_any},
      {"compiler", &R::compiler, Rule::if_any},
      {"host", &R::host, Rule::if_any},
      {"cpu", &R::cpu, Rule::if_any},
      {"cores", &R::cores, Rule::if_any},
      {"libtorch", &R::libtorch, Rule::if_any},
      {kAnyOther,
       [](JsonText& text, const std::string& key, Environment& to) { read_value(text, key, to.others[key]); },
       [](json& record, const std::string&, const Environment& from) { record.update(from.others); }}};
  return result;
}

const Schema<NodeRanks>& schema(const NodeRanks*) {
  using R = NodeRanks;
  static const Schema<R> result{{}, node_ranks<R>()};
  return result;
}

const Schema<RunConfig>& schema(const RunConfig*) {
  using R = RunConfig;
  static const Schema<R> result = {{"model", &R::model},
                                   {"data", &R::data},
                                   {"strategy", &R::strategy},
                                   {"wire", &R::wire},
                                   {"transport", &R::transport},
                                   {"precision", &R::precision},
                                   {"optimizer", &R::optimizer},
                                   {"device", &R::device},
                                   {"device_used", &R::device_used},
                                   {"batch", &R::batch},
                                   {"accumulate", &R::accumulate},
                                   {"ranks", &R::ranks},
                                   {"servers", &R::servers},
                                   {"workers", &R::workers},
                                   {"threads", &R::threads},
                                   {"width", &R::width},
                                   {"depth", &R::depth},
                                   {"tokens", &R::tokens},
                                   {"clip_norm", &R::clip_norm},
                                   {"link_gbps", &R::link_gbps},
                                   {"link_startup_us", &R::link_startup_us},
                                   {"by_node", &R::by_node},
                                   {"outer_optimizer", &R::outer_optimizer}};
  return result;
}

json config_record(json options, int ranks, const std::string& device_used) {
  options["ranks"] = ranks;
  options["device_used"] = device_used;
  return options;
}

const Schema<RunRecord>& schema(const RunRecord*) {
  using R = RunRecord;
  static const Schema<R> result = {
      {"config",
       [](JsonText& text, const std::string& key, RunRecord& to) {
         read_value(text, key, to.config);
         to.parsed = to.config.get<RunConfig>();
       },
       [](json& record, const std::string& key, const RunRecord& from) { record[key] = from.config; }},
      {"nodes", &R::nodes},
      {"environment", &R::environment},
      {"launcher", &R::launcher},
      {"resumed_at_step", &R::resumed_at_step}};
  return result;
}

const Schema<TriedPlan>& schema(const TriedPlan*) {
  using R = TriedPlan;
  static const Schema<R> result = {{"strategy", &R::strategy},
                                   {"settings", &R::settings},
                                   {"predicted_s", &R::predicted_s},
                                   {"measured_s", &R::measured_s},
                                   {"step_s", &R::step_s}};
  return result;
}

const Schema<SearchRecord>& schema(const SearchRecord*) {
  using R = SearchRecord;
  static const Schema<R> result = {{"steps", &R::steps}, {"chosen", &R::chosen}, {"candidates", &R::candidates}};
  return result;
}

const Schema<PlanRecord>& schema(const PlanRecord*) {
  using R = PlanRecord;
  static const Schema<R> result = {{"profile", &R::profile, Rule::required},
                                   {"plan", &R::plan, Rule::required},
                                   {"step", &R::step},
                                   {"links", &R::links},
                                   {"search", &R::search},
                                   {"remark", &R::remark, Rule::if_any}};
  return result;
}

const Schema<ProgressRecord>& schema(const ProgressRecord*) {
  using R = ProgressRecord;
  static const Schema<R> result = {{"step", &R::step},
                                   {"epoch", &R::epoch},
                                   {"data_per_s", &R::data_per_s},
                                   {"lr", &R::lr},
                                   {"loss", &R::loss, Rule::null_is_nan},
                                   {"loss_smoothed", &R::loss_smoothed, Rule::null_is_nan},
                                   {"gradient_norm", &R::gradient_norm, Rule::null_is_nan}};
  return result;
}

const Schema<RankEpoch>& schema(const RankEpoch*) {
  using R = RankEpoch;
  static const Schema<R> result{{{"samples", &R::samples},
                                 {"loss_sum", &R::loss_sum, Rule::null_is_nan},
                                 {"own_step_s", &R::own_step_s, Rule::if_any}},
                                rank_times<RankEpoch>()};
  return result;
}

const Schema<NodeEpoch>& schema(const NodeEpoch*) {
  using R = NodeEpoch;
  static const Schema<R> result{{{"samples", &R::samples},
                                 {"data_per_s", &R::data_per_s},
                                 {"train_s", &R::train_s},
                                 {"comm_exposed_s", &R::comm_exposed_s}},
                                node_ranks<NodeEpoch>()};
  return result;
}

const Schema<TestResults>& schema(const TestResults*) {
  using R = TestResults;
  static const Schema<R> result = {
      {kAnyOther, read_test,
       [](json& record, const std::string&, const TestResults& from) { write_test(record, from, true); }}};
  return result;
}

const Schema<EpochRecord>& schema(const EpochRecord*) {
  using R = EpochRecord;
  static const Schema<R> result = {{"epoch", &R::epoch},
                                   {"step", &R::step},
                                   {"train_s", &R::train_s},
                                   {"data_per_s", &R::data_per_s},
                                   {"train_loss", &R::train_loss, Rule::null_is_nan},
                                   {"ranks", &R::ranks},
                                   {"nodes", &R::nodes, Rule::if_any},
                                   {"test_s", &R::test_s},
                                   {"step_s", &R::step_s},
                                   {"stragglers", &R::stragglers, Rule::if_any},
                                   {kAnyOther,
                                    [](JsonText& text, const std::string& key, EpochRecord& to) {
                                      TestResults results = to.test.value_or(TestResults());
                                      if (read_test(text, key, results) || to.test) to.test = results;
                                    },
                                    [](json& record, const std::string&, const EpochRecord& from) {
                                      if (from.test) write_test(record, *from.test, true);
                                    }}};
  return result;
}

const Schema<RankBreakdown>& schema(const RankBreakdown*) {
  static const Schema<RankBreakdown> result{{}, [] {
                                              std::vector<Field<RankBreakdown>> all;
                                              for (const auto& [name, member] : parts()) all.emplace_back(name, member);
                                              return all;
                                            }()};
  return result;
}

const Schema<TransferBreakdown>& schema(const TransferBreakdown*) {
  using R = TransferBreakdown;
  static const Schema<R> result = {
      {"name", &R::name},
      {"operation",
       [](JsonText& text, const std::string& key, TransferBreakdown& to) {
         const std::string name = text_at(text, key);
         for (const Operation operation : kOperations)
           if (name == word(operation)) to.operation = operation;
       },
       [](json& record, const std::string& key, const TransferBreakdown& from) { record[key] = word(from.operation); }},
      {"bytes", &R::bytes},
      {"busy_s", &R::busy_s},
      {"skew_s", &R::skew_s},
      {"exposed_s", &R::exposed_s}};
  return result;
}

const Schema<StepBreakdown>& schema(const StepBreakdown*) {
  using R = StepBreakdown;
  static const Schema<R> result = {
      {"first_step", &R::first_step},       {"steps", &R::steps},
      {"strategy", &R::strategy},           {"startup_s", &R::startup_s},
      {"startup_from", &R::startup_from},   {"is_of_device", &R::is_of_device, Rule::if_any},
      {"ranks", &R::ranks, Rule::required}, {"transfers", &R::transfers}};
  return result;
}

const Schema<CheckpointRecord>& schema(const CheckpointRecord*) {
  using R = CheckpointRecord;
  static const Schema<R> result = {{"step", &R::step}, {"folder", &R::folder}, {"seconds", &R::seconds}};
  return result;
}

const Schema<EndRecord>& schema(const EndRecord*) {
  using R = EndRecord;
  static const Schema<R> result = {{"is_failed", &R::is_failed}, {"step", &R::step}, {"reason", &R::reason}};
  return result;
}

const Schema<RankSummary>& schema(const RankSummary*) {
  using R = RankSummary;
  static const Schema<R> result{{{"weights_sha256", &R::weights_sha256},
                                 {"peak_rss_bytes", &R::peak_rss_bytes},
                                 {"optimizer_state_bytes", &R::optimizer_state_bytes},
                                 {"steady_s", &R::steady_s},
                                 {"bad_samples", &R::bad_samples, Rule::if_any}},
                                rank_times<RankSummary>()};
  return result;
}

const Schema<SummaryRecord>& schema(const SummaryRecord*) {
  using R = SummaryRecord;
  static const Schema<R> result{{{"model", &R::model},
                                 {"data", &R::data},
                                 {"ranks", &R::ranks},
                                 {"strategy", &R::strategy},
                                 {"strategy_used", &R::strategy_used},
                                 {"transport", &R::transport},
                                 {"nodes", &R::nodes},
                                 {"device", &R::device},
                                 {"precision", &R::precision},
                                 {"steps", &R::steps},
                                 {"epochs", &R::epochs},
                                 {"warm_up_steps", &R::warm_up_steps},
                                 {"samples", &R::samples},
                                 {"samples_per_s", &R::samples_per_s},
                                 {"samples_per_s_steady", &R::samples_per_s_steady},
                                 {"weights_sha256", &R::weights_sha256},
                                 {"peak_rss_bytes", &R::peak_rss_bytes},
                                 {"optimizer_state_bytes", &R::optimizer_state_bytes},
                                 {"best_metric", &R::best_metric, Rule::if_any},
                                 {"best_value", &R::best_value, Rule::if_any},
                                 {"best_step", &R::best_step, Rule::if_any},
                                 {"best_epoch", &R::best_epoch, Rule::if_any},
                                 {"is_stopped_early", &R::is_stopped_early, Rule::if_any},
                                 {"run_folder", &R::run_folder},
                                 {"config", &R::config},
                                 {"environment", &R::environment},
                                 {"per_rank", &R::per_rank},
                                 {"bad_samples", &R::bad_samples, Rule::if_any},
                                 {kAnyOther,
                                  [](JsonText& text, const std::string& key, SummaryRecord& to) {
                                    if (read_test(text, key, to.test)) to.is_tested = true;
                                  },
                                  [](json& record, const std::string&, const SummaryRecord& from) {
                                    write_test(record, from.test, from.is_tested);
                                  }}},
                                rank_times<SummaryRecord>()};
  return result;
}

void to_json(json& to, const Environment& from) { to = schema(&from).write(from); }
void to_json(json& to, const RunConfig& from) { to = schema(&from).write(from); }
void to_json(json& to, const RankEpoch& from) { to = schema(&from).write(from); }
void to_json(json& to, const RankSummary& from) { to = schema(&from).write(from); }
void to_json(json& to, const TestResults& from) { to = schema(&from).write(from); }
void to_json(json& to, const RunRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const PlanRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const ProgressRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const EpochRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const StepBreakdown& from) { to = schema(&from).write(from); }
void to_json(json& to, const CheckpointRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const EndRecord& from) { to = schema(&from).write(from); }
void to_json(json& to, const SummaryRecord& from) { to = schema(&from).write(from); }
void from_json(const json& from, Environment& to) { to = read_text<Environment>(from.dump()); }
void from_json(const json& from, RunConfig& to) { to = read_text<RunConfig>(from.dump()); }
void from_json(const json& from, RankEpoch& to) { to = read_text<RankEpoch>(from.dump()); }
void from_json(const json& from, RankSummary& to) { to = read_text<RankSummary>(from.dump()); }
void from_json(const json& from, TestResults& to) { to = read_text<TestResults>(from.dump()); }
void from_json(const json& from, RunRecord& to) { to = read_text<RunRecord>(from.dump()); }
void from_json(const json& from, PlanRecord& to) { to = read_text<PlanRecord>(from.dump()); }
void from_json(const json& from, ProgressRecord& to) { to = read_text<ProgressRecord>(from.dump()); }
void from_json(const json& from, EpochRecord& to) { to = read_text<EpochRecord>(from.dump()); }
void from_json(const json& from, StepBreakdown& to) { to = read_text<StepBreakdown>(from.dump()); }
void from_json(const json& from, CheckpointRecord& to) { to = read_text<CheckpointRecord>(from.dump()); }
void from_json(const json& from, EndRecord& to) { to = read_text<EndRecord>(from.dump()); }
void from_json(const json& from, SummaryRecord& to) { to = read_text<SummaryRecord>(from.dump()); }

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
