#include "record/cell.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  static const auto result =
      Schema<Configuration>()
          .add("model", &Configuration::model, Rule::if_any)
          .add("data", &Configuration::data, Rule::if_any)
          .add("strategy", &Configuration::strategy, Rule::if_any)
          .add("wire", &Configuration::wire, Rule::if_any)
          .add("transport", &Configuration::transport, Rule::if_any)
          .add("network", &Configuration::network, Rule::if_any)
          .add("precision", &Configuration::precision, Rule::if_any)
          .add("device", &Configuration::device, Rule::if_any)
          .add("other", &Configuration::other, Rule::if_any)
          .add("batch", &Configuration::batch, Rule::if_any)
          .add("ranks", &Configuration::ranks, Rule::if_any)
          .add("nodes", &Configuration::nodes, Rule::if_any)
          .add("servers", &Configuration::servers, Rule::if_any)
          .add("workers", &Configuration::workers, Rule::if_any)
          .others(
              [](JsonText& text, const std::string& key, Configuration& to) {
                if (text.next() == 'n')
                  text.skip();
                else
                  to.by_name.emplace_back(key, text.next() == '"' ? text.text() : std::string(text.skip()));
              },
              [](json& record, const std::string&, const Configuration& from) {
                for (const auto& [name, value] : from.by_name) record[name] = value;
              });
  return result;
}

const Schema<RankTimesOfEpoch>& schema(const RankTimesOfEpoch*) {
  static const auto result = Schema<RankTimesOfEpoch>()
                                 .add("rank", &RankTimesOfEpoch::rank)
                                 .add("node", &RankTimesOfEpoch::node, Rule::if_any)
                                 .add("train_s", &RankTimesOfEpoch::train_s)
                                 .add("comm_s", &RankTimesOfEpoch::comm_s)
                                 .add("comm_exposed_s", &RankTimesOfEpoch::comm_exposed_s)
                                 .add("data_wait_s", &RankTimesOfEpoch::data_wait_s);
  return result;
}

const Schema<RateAtStep>& schema(const RateAtStep*) {
  static const auto result = Schema<RateAtStep>().add("step", &RateAtStep::step).add("value", &RateAtStep::data_per_s);
  return result;
}

const Schema<EpochTimes>& schema(const EpochTimes*) {
  static const auto result = Schema<EpochTimes>()
                                 .add("epoch", &EpochTimes::epoch)
                                 .add("train_s", &EpochTimes::train_s)
                                 .add("test_s", &EpochTimes::test_s)
                                 .add("test_accuracy", &EpochTimes::test_accuracy)
                                 .add("test_dice", &EpochTimes::test_dice)
                                 .add("test_loss", &EpochTimes::test_loss)
                                 .add("loss", &EpochTimes::loss)
                                 .add(
                                     "data_per_s",
                                     [](JsonText& text, const std::string& key, EpochTimes& to) {
                                       if (text.next() == '[')
                                         read_value(text, key, to.rates);
                                       else
                                         text.skip();  // a number, of the whole epoch: as a training run has it
                                     },
                                     [](json& record, const std::string& key, const EpochTimes& from) {
                                       record[key] = write_value(from.rates);
                                     })
                                 .add("ranks", &EpochTimes::ranks);
  return result;
}

const Schema<StepParts>& schema(const StepParts*) {
  static const auto result = Schema<StepParts>()
                                 .add("compute_s", &StepParts::compute_s)
                                 .add("exposed", &StepParts::exposed)
                                 .add("data_wait_s", &StepParts::data_wait_s)
                                 .add("optimizer_s", &StepParts::optimizer_s);
  return result;
}

const Schema<NodeShare>& schema(const NodeShare*) {
  static const auto result = Schema<NodeShare>()
                                 .add("name", &NodeShare::name)
                                 .add("ranks", &NodeShare::ranks)
                                 .add("gpu", &NodeShare::gpu, Rule::if_any);
  return result;
}

const Schema<StatedRate>& schema(const StatedRate*) {
  static const auto result =
      Schema<StatedRate>().add("mean", &StatedRate::mean).add("deviation", &StatedRate::deviation);
  return result;
}

const Schema<NetworkOfCell>& schema(const NetworkOfCell*) {
  static const auto result = Schema<NetworkOfCell>()
                                 .add("name", &NetworkOfCell::name)
                                 .add("emulated", &NetworkOfCell::is_emulated)
                                 .add("gbps", &NetworkOfCell::gbps)
                                 .add("startup_us", &NetworkOfCell::startup_us)
                                 .add("note", &NetworkOfCell::note);
  return result;
}

const Schema<Stated>& schema(const Stated*) {
  static const auto result = Schema<Stated>()
                                 .add("speedup", &Stated::speedup)
                                 .add("epochs", &Stated::epochs)
                                 .add("average", &Stated::is_average, Rule::if_any);
  return result;
}

const Schema<Cell>& schema(const Cell*) {
  static const auto result =
      Schema<Cell>()
          .add(
              "source",
              [](JsonText& text, const std::string& key, Cell& to) { to.source = source_named(text_at(text, key)); },
              [](json& record, const std::string& key, const Cell& from) { record[key] = word(from.source); })
          .add("sweep", &Cell::sweep, Rule::if_any)
          .add("cell", &Cell::id, Rule::if_any)
          .add("repeat", &Cell::repeat)
          .add(
              "status",
              [](JsonText& text, const std::string& key, Cell& to) { to.is_failed = text_at(text, key) == "failed"; },
              [](json& record, const std::string& key, const Cell& from) {
                record[key] = from.is_failed ? "failed" : "done";
              })
          .add("error", &Cell::error, Rule::if_any)
          .add("config", &Cell::config)
          .add("baseline", &Cell::is_baseline)
          .add(
              "environment",
              [](JsonText& text, const std::string& key, Cell& to) {
                if (has_at(text, key, '{')) to.environment = shared_environment(text.skip());
              },
              [](json& record, const std::string& key, const Cell& from) {
                if (from.environment) record[key] = *from.environment;
              })
          .add("load", &Cell::load)
          .add("command", &Cell::command, Rule::if_any)
          .add("launcher", &Cell::launcher, Rule::if_any)
          .add("wall_s", &Cell::wall_s, Rule::if_any)
          .add("network", &Cell::network)
          .add("samples_per_step", &Cell::samples_per_step, Rule::if_any)
          .add("step_s", &Cell::step_s)
          .add("warmup_steps", &Cell::warmup_steps)
          .add("throughput", &Cell::throughput)
          .add("epochs", &Cell::epochs)
          .add("breakdown", &Cell::parts)
          .add("steps", &Cell::steps, Rule::if_any)
          .add("run_s", &Cell::run_s, Rule::if_any)
          .add("test_accuracy", &Cell::test_accuracy)
          .add("test_dice", &Cell::test_dice)
          .add("test_loss", &Cell::test_loss)
          .add("peak_rss_bytes", &Cell::peak_rss_bytes, Rule::if_any)
          .add("nodes", &Cell::nodes, Rule::if_any)
          .add("node_list", &Cell::node_list, Rule::if_any)
          .add("stated", &Cell::stated, Rule::if_any);
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
