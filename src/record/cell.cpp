#include "record/cell.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "record/record_file.h"
#include "record/schemas.h"
#include "tutti/error.h"

namespace tutti {

using nlohmann::json;

// Declared before their first use: a template looks for them where it is used.
const Schema<Configuration>& schema(const Configuration*);
const Schema<RankTimesOfEpoch>& schema(const RankTimesOfEpoch*);
const Schema<RateAtStep>& schema(const RateAtStep*);
const Schema<EpochTimes>& schema(const EpochTimes*);
const Schema<StepParts>& schema(const StepParts*);
const Schema<NodeShare>& schema(const NodeShare*);
const Schema<StatedRate>& schema(const StatedRate*);
const Schema<NetworkOfCell>& schema(const NetworkOfCell*);
const Schema<Stated>& schema(const Stated*);
const Schema<Cell>& schema(const Cell*);

namespace {

// Settings that tell repeats apart and not configurations.
bool is_of_the_repeat(const std::string& key) { return key == "seed" || key == "repeat" || key == "name"; }

Source source_named(const std::string& name) {
  if (name.empty()) return Source::measured;
  for (const Source source : {Source::measured, Source::simulated, Source::published})
    if (name == word(source)) return source;
  throw Error("its source is '{}'; measured, simulated and published are known", name);
}

/// Most cells have the environment of the one before, and share it.
std::shared_ptr<const Environment> shared_environment(std::string_view text) {
  thread_local std::string last_text;
  thread_local std::shared_ptr<const Environment> last;
  if (!last || text != last_text) {
    last = std::make_shared<const Environment>(read_text<Environment>(text));
    last_text = text;
  }
  return last;
}

}  // namespace

const Schema<Configuration>& schema(const Configuration*) {
  using R = Configuration;
  static const Schema<R> result = {
      {"model", &R::model, Rule::if_any},
      {"data", &R::data, Rule::if_any},
      {"strategy", &R::strategy, Rule::if_any},
      {"wire", &R::wire, Rule::if_any},
      {"transport", &R::transport, Rule::if_any},
      {"network", &R::network, Rule::if_any},
      {"precision", &R::precision, Rule::if_any},
      {"device", &R::device, Rule::if_any},
      {"other", &R::other, Rule::if_any},
      {"batch", &R::batch, Rule::if_any},
      {"ranks", &R::ranks, Rule::if_any},
      {"nodes", &R::nodes, Rule::if_any},
      {"servers", &R::servers, Rule::if_any},
      {"workers", &R::workers, Rule::if_any},
      {kAnyOther,
       [](JsonText& text, const std::string& key, Configuration& to) {
         if (text.next() == 'n')
           text.skip();
         else
           to.by_name.emplace_back(key,
                                   text.next() == '"' ? text.text() : printable(valid_utf8(std::string(text.skip()))));
       },
       [](json& record, const std::string&, const Configuration& from) {
         for (const auto& [name, value] : from.by_name) record[name] = value;
       }}};
  return result;
}

const Schema<RankTimesOfEpoch>& schema(const RankTimesOfEpoch*) {
  using R = RankTimesOfEpoch;
  static const Schema<R> result = {
      {"rank", &R::rank},     {"node", &R::node, Rule::if_any},       {"train_s", &R::train_s},
      {"comm_s", &R::comm_s}, {"comm_exposed_s", &R::comm_exposed_s}, {"data_wait_s", &R::data_wait_s}};
  return result;
}

const Schema<RateAtStep>& schema(const RateAtStep*) {
  using R = RateAtStep;
  static const Schema<R> result = {{"step", &R::step}, {"value", &R::data_per_s}};
  return result;
}

const Schema<EpochTimes>& schema(const EpochTimes*) {
  using R = EpochTimes;
  static const Schema<R> result = {
      {"epoch", &R::epoch},
      {"train_s", &R::train_s},
      {"test_s", &R::test_s},
      {"test_accuracy", &R::test_accuracy},
      {"test_dice", &R::test_dice},
      {"test_loss", &R::test_loss},
      {"loss", &R::loss},
      {"data_per_s",
       [](JsonText& text, const std::string& key, EpochTimes& to) {
         if (text.next() == '[')
           read_value(text, key, to.rates);
         else
           text.skip();  // a number, of the whole epoch: as a training run has it
       },
       [](json& record, const std::string& key, const EpochTimes& from) { record[key] = write_value(from.rates); }},
      {"ranks", &R::ranks}};
  return result;
}

const Schema<StepParts>& schema(const StepParts*) {
  using R = StepParts;
  static const Schema<R> result = {{"compute_s", &R::compute_s},
                                   {"exposed", &R::exposed},
                                   {"data_wait_s", &R::data_wait_s},
                                   {"optimizer_s", &R::optimizer_s}};
  return result;
}

const Schema<NodeShare>& schema(const NodeShare*) {
  using R = NodeShare;
  static const Schema<R> result = {{"name", &R::name}, {"ranks", &R::ranks}, {"gpu", &R::gpu, Rule::if_any}};
  return result;
}

const Schema<StatedRate>& schema(const StatedRate*) {
  using R = StatedRate;
  static const Schema<R> result = {{"mean", &R::mean}, {"deviation", &R::deviation}};
  return result;
}

const Schema<NetworkOfCell>& schema(const NetworkOfCell*) {
  using R = NetworkOfCell;
  static const Schema<R> result = {{"name", &R::name},
                                   {"emulated", &R::is_emulated},
                                   {"gbps", &R::gbps},
                                   {"startup_us", &R::startup_us},
                                   {"note", &R::note}};
  return result;
}

const Schema<Stated>& schema(const Stated*) {
  using R = Stated;
  static const Schema<R> result = {
      {"speedup", &R::speedup}, {"epochs", &R::epochs}, {"average", &R::is_average, Rule::if_any}};
  return result;
}

const Schema<Cell>& schema(const Cell*) {
  using R = Cell;
  static const Schema<R> result = {
      {"source", [](JsonText& text, const std::string& key, Cell& to) { to.source = source_named(text_at(text, key)); },
       [](json& record, const std::string& key, const Cell& from) { record[key] = word(from.source); }},
      {"sweep", &R::sweep, Rule::if_any},
      {"cell", &R::id, Rule::if_any},
      {"repeat", &R::repeat},
      {"status",
       [](JsonText& text, const std::string& key, Cell& to) { to.is_failed = text_at(text, key) == "failed"; },
       [](json& record, const std::string& key, const Cell& from) {
         record[key] = from.is_failed ? "failed" : "done";
       }},
      {"error", &R::error, Rule::if_any},
      {"config", &R::config},
      {"baseline", &R::is_baseline},
      {"environment",
       [](JsonText& text, const std::string& key, Cell& to) {
         if (has_at(text, key, '{')) to.environment = shared_environment(text.skip());
       },
       [](json& record, const std::string& key, const Cell& from) {
         if (from.environment) record[key] = *from.environment;
       }},
      {"load", &R::load},
      {"command", &R::command, Rule::if_any},
      {"launcher", &R::launcher, Rule::if_any},
      {"wall_s", &R::wall_s, Rule::if_any},
      {"network", &R::network},
      {"samples_per_step", &R::samples_per_step, Rule::if_any},
      {"step_s", &R::step_s},
      {"warmup_steps", &R::warmup_steps},
      {"throughput", &R::throughput},
      {"epochs", &R::epochs},
      {"breakdown", &R::parts},
      {"steps", &R::steps, Rule::if_any},
      {"run_s", &R::run_s, Rule::if_any},
      {"test_accuracy", &R::test_accuracy},
      {"test_dice", &R::test_dice},
      {"test_loss", &R::test_loss},
      {"peak_rss_bytes", &R::peak_rss_bytes, Rule::if_any},
      {"nodes", &R::nodes, Rule::if_any},
      {"node_list", &R::node_list, Rule::if_any},
      {"stated", &R::stated, Rule::if_any}};
  return result;
}

Cell parse_cell(std::string_view record) {
  Cell cell = read_text<Cell>(record);
  if (cell.throughput && cell.throughput->mean == 0) cell.throughput.reset();  // states nothing
  for (EpochTimes& epoch : cell.epochs)
    for (std::size_t i = 0; i < epoch.ranks.size(); ++i)
      if (epoch.ranks[i].rank < 0) epoch.ranks[i].rank = static_cast<int>(i);
  if (cell.steps == 0) cell.steps = static_cast<int64_t>(cell.step_s.size());
  return cell;
}

void from_json(const json& from, Configuration& to) { to = read_text<Configuration>(from.dump()); }

void to_json(json& to, const Cell& cell) {
  to = schema(&cell).write(cell);
  to[kKindKey] = Cell::kKind;
}

StepParts parts_of(const StepBreakdown& breakdown) {
  const RankBreakdown mean = mean_of(breakdown.ranks);
  return {mean.compute_s,
          mean.data_wait_s,
          mean.optimizer_s,
          {{"slowest rank", mean.slowest_rank_s},
           {"startup", mean.startup_s},
           {"bandwidth", mean.bandwidth_s},
           {"scheduling", mean.scheduling_s}}};
}

std::string Configuration::further() const {
  std::string text = other;
  for (const auto& [name, value] : by_name)
    if (!is_of_the_repeat(name)) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

const char* word(Source source) {
  return source == Source::measured ? "measured" : source == Source::simulated ? "simulated" : "published";
}

std::string key_of(const Configuration& config) {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", config.model,
                     config.data, config.strategy, config.wire, config.transport, config.network, config.precision,
                     config.device, config.further(), config.batch, config.ranks, config.nodes, config.servers,
                     config.workers);
}

std::string describe(const Configuration& config) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  add(config.model);
  add(config.data);
  if (config.batch > 0) add(fmt::format("batch {}", config.batch));
  add(config.network);
  add(config.transport);
  add(config.strategy);
  if (config.wire != "fp32") add(config.wire);
  if (config.precision != "fp32") add(config.precision);
  add(config.device);
  if (config.workers >= 0) add(fmt::format("{} worker{}", config.workers, config.workers == 1 ? "" : "s"));
  if (config.servers > 0) add(fmt::format("{} server{}", config.servers, config.servers == 1 ? "" : "s"));
  add(config.further());
  if (config.ranks > 0) add(fmt::format("{} rank{}", config.ranks, config.ranks == 1 ? "" : "s"));
  if (config.nodes > 1) add(fmt::format("{} nodes", config.nodes));
  return text.empty() ? "nothing stated" : text;
}

}  // namespace tutti
