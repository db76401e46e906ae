#include "report/cell.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/fields.h"

namespace tutti {
namespace {

using nlohmann::json;

// Settings that tell repeats apart and not configurations.
bool is_of_the_repeat(const std::string& key) { return key == "seed" || key == "repeat" || key == "name"; }

std::string plain(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

Configuration configuration(const json& record) {
  Configuration config;
  const json* const stated = object_in(record, "config");
  if (stated == nullptr) return config;
  for (const auto& [key, value] : stated->items()) {
    if (value.is_null()) continue;
    if (std::string* const text = key == "model"       ? &config.model
                                  : key == "data"      ? &config.data
                                  : key == "strategy"  ? &config.strategy
                                  : key == "wire"      ? &config.wire
                                  : key == "transport" ? &config.transport
                                  : key == "network"   ? &config.network
                                  : key == "precision" ? &config.precision
                                  : key == "device"    ? &config.device
                                                       : nullptr)
      *text = plain(value);
    else if (key == "batch")
      config.batch = whole_in(*stated, "batch", 0);
    else if (int* const number = key == "ranks"     ? &config.ranks
                                 : key == "nodes"   ? &config.nodes
                                 : key == "servers" ? &config.servers
                                 : key == "workers" ? &config.workers
                                                    : nullptr)
      *number = static_cast<int>(whole_in(*stated, key.c_str(), 0));
    else if (key == "other")
      config.other = plain(value) + (config.other.empty() ? "" : ", " + config.other);
    else if (!is_of_the_repeat(key))
      config.other += fmt::format("{}{} {}", config.other.empty() ? "" : ", ", key, plain(value));
  }
  return config;
}

EpochTimes epoch_times(const json& record) {
  EpochTimes epoch;
  epoch.epoch = static_cast<int>(whole_in(record, "epoch", 0));
  epoch.train_s = number_in(record, "train_s");
  epoch.test_s = number_in(record, "test_s");
  epoch.test_accuracy = number_in(record, "test_accuracy");
  epoch.loss = number_in(record, "loss");
  // A training run's own records have a number here, the rate of the whole epoch.
  if (const auto rates = record.find("data_per_s"); rates != record.end() && rates->is_array())
    for (const json& rate : *rates)
      epoch.rates.push_back({whole_in(rate, "step", 0), number_in(rate, "value").value_or(0)});
  if (const json* const ranks = array_in(record, "ranks"))
    for (const json& rank : *ranks) {
      RankTimesOfEpoch times;
      times.rank = static_cast<int>(whole_in(rank, "rank", static_cast<int64_t>(epoch.ranks.size())));
      times.node = text_in(rank, "node");
      times.train_s = number_in(rank, "train_s");
      times.comm_s = number_in(rank, "comm_s");
      times.comm_exposed_s = number_in(rank, "comm_exposed_s");
      times.data_wait_s = number_in(rank, "data_wait_s");
      epoch.ranks.push_back(std::move(times));
    }
  return epoch;
}

Source source_named(const std::string& name) {
  if (name.empty() || name == "measured") return Source::measured;
  if (name == "simulated") return Source::simulated;
  if (name == "published") return Source::published;
  throw Error("its source is '{}'; measured, simulated and published are known", name);
}

void put(json& record, const char* key, const std::optional<double>& value) {
  if (value) record[key] = *value;
}

void put(json& record, const char* key, const std::string& value) {
  if (!value.empty()) record[key] = value;
}

json to_json(const Configuration& config) {
  json record = json::object();
  put(record, "model", config.model);
  put(record, "data", config.data);
  put(record, "strategy", config.strategy);
  put(record, "wire", config.wire);
  put(record, "transport", config.transport);
  put(record, "network", config.network);
  put(record, "precision", config.precision);
  put(record, "device", config.device);
  put(record, "other", config.other);
  if (config.batch > 0) record["batch"] = config.batch;
  if (config.ranks > 0) record["ranks"] = config.ranks;
  if (config.nodes > 0) record["nodes"] = config.nodes;
  if (config.servers >= 0) record["servers"] = config.servers;
  if (config.workers >= 0) record["workers"] = config.workers;
  return record;
}

json to_json(const EpochTimes& epoch) {
  json record = {{"epoch", epoch.epoch}};
  put(record, "train_s", epoch.train_s);
  put(record, "test_s", epoch.test_s);
  put(record, "test_accuracy", epoch.test_accuracy);
  put(record, "loss", epoch.loss);
  for (const RateAtStep& rate : epoch.rates)
    record["data_per_s"].push_back({{"step", rate.step}, {"value", rate.data_per_s}});
  for (const RankTimesOfEpoch& rank : epoch.ranks) {
    json times = {{"rank", rank.rank}};
    put(times, "node", rank.node);
    put(times, "train_s", rank.train_s);
    put(times, "comm_s", rank.comm_s);
    put(times, "comm_exposed_s", rank.comm_exposed_s);
    put(times, "data_wait_s", rank.data_wait_s);
    record["ranks"].push_back(std::move(times));
  }
  return record;
}

}  // namespace

const char* word(Source source) {
  return source == Source::measured ? "measured" : source == Source::simulated ? "simulated" : "published";
}

std::string key_of(const Configuration& config) {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", config.model,
                     config.data, config.strategy, config.wire, config.transport, config.network, config.precision,
                     config.device, config.other, config.batch, config.ranks, config.nodes, config.servers,
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
  add(config.other);
  if (config.ranks > 0) add(fmt::format("{} rank{}", config.ranks, config.ranks == 1 ? "" : "s"));
  if (config.nodes > 1) add(fmt::format("{} nodes", config.nodes));
  return text.empty() ? "nothing stated" : text;
}

Cell cell_from_json(const json& record) {
  Cell cell;
  cell.source = source_named(text_in(record, "source"));
  cell.sweep = text_in(record, "sweep");
  cell.id = text_in(record, "cell");
  cell.repeat = static_cast<int>(whole_in(record, "repeat", 1));
  cell.is_failed = text_in(record, "status") == "failed";
  cell.error = text_in(record, "error");
  cell.config = configuration(record);
  cell.is_baseline = flag_in(record, "baseline");
  if (const json* const environment = object_in(record, "environment")) cell.environment = environment->dump();
  cell.load = number_in(record, "load");
  cell.command = text_in(record, "command");
  cell.samples_per_step = number_in(record, "samples_per_step").value_or(0);
  cell.step_s = numbers_in(record, "step_s");
  cell.warmup_steps = whole_in(record, "warmup_steps", 0);
  if (const json* const rate = object_in(record, "throughput"))
    if (const auto mean = number_in(*rate, "mean")) cell.throughput = StatedRate{*mean, number_in(*rate, "deviation")};
  if (const json* const epochs = array_in(record, "epochs"))
    for (const json& epoch : *epochs) cell.epochs.push_back(epoch_times(epoch));
  if (const json* const parts = object_in(record, "breakdown")) {
    StepParts step;
    step.compute_s = number_in(*parts, "compute_s").value_or(0);
    step.data_wait_s = number_in(*parts, "data_wait_s").value_or(0);
    step.optimizer_s = number_in(*parts, "optimizer_s").value_or(0);
    if (const json* const exposed = object_in(*parts, "exposed"))
      for (const auto& [cause, value] : exposed->items())
        step.exposed.emplace_back(cause, number_in(*exposed, cause.c_str()).value_or(0));
    cell.parts = std::move(step);
  }
  cell.steps = whole_in(record, "steps", static_cast<int64_t>(cell.step_s.size()));
  cell.run_s = number_in(record, "run_s").value_or(0);
  cell.test_accuracy = number_in(record, "test_accuracy");
  if (const json* const nodes = array_in(record, "nodes"))
    for (const json& node : *nodes)
      cell.nodes.push_back({text_in(node, "name"), static_cast<int>(whole_in(node, "ranks", 0)), text_in(node, "gpu")});
  cell.node_list = text_in(record, "node_list");
  if (const json* const stated = object_in(record, "stated")) {
    cell.stated.speedup = number_in(*stated, "speedup");
    if (stated->contains("epochs")) cell.stated.epochs = static_cast<int>(whole_in(*stated, "epochs", 0));
    cell.stated.is_average = flag_in(*stated, "average");
  }
  return cell;
}

json to_json(const Cell& cell) {
  json record = {{"record", "cell"},
                 {"source", word(cell.source)},
                 {"repeat", cell.repeat},
                 {"status", cell.is_failed ? "failed" : "done"},
                 {"config", to_json(cell.config)}};
  put(record, "sweep", cell.sweep);
  put(record, "cell", cell.id);
  put(record, "error", cell.error);
  if (cell.is_baseline) record["baseline"] = true;
  if (!cell.environment.empty()) record["environment"] = json::parse(cell.environment);
  put(record, "load", cell.load);
  put(record, "command", cell.command);
  if (cell.samples_per_step > 0) record["samples_per_step"] = cell.samples_per_step;
  if (!cell.step_s.empty()) record["step_s"] = cell.step_s;
  if (cell.warmup_steps > 0) record["warmup_steps"] = cell.warmup_steps;
  if (cell.throughput) {
    record["throughput"] = {{"mean", cell.throughput->mean}};
    put(record["throughput"], "deviation", cell.throughput->deviation);
  }
  for (const EpochTimes& epoch : cell.epochs) record["epochs"].push_back(to_json(epoch));
  if (cell.parts) {
    record["breakdown"] = {{"compute_s", cell.parts->compute_s},
                           {"exposed", json::object()},
                           {"data_wait_s", cell.parts->data_wait_s},
                           {"optimizer_s", cell.parts->optimizer_s}};
    for (const auto& [cause, seconds] : cell.parts->exposed) record["breakdown"]["exposed"][cause] = seconds;
  }
  if (cell.steps > 0) record["steps"] = cell.steps;
  if (cell.run_s > 0) record["run_s"] = cell.run_s;
  put(record, "test_accuracy", cell.test_accuracy);
  for (const NodeShare& node : cell.nodes) {
    record["nodes"].push_back({{"name", node.name}, {"ranks", node.ranks}});
    put(record["nodes"].back(), "gpu", node.gpu);
  }
  put(record, "node_list", cell.node_list);
  json stated = json::object();
  put(stated, "speedup", cell.stated.speedup);
  if (cell.stated.epochs) stated["epochs"] = *cell.stated.epochs;
  if (cell.stated.is_average) stated["average"] = true;
  if (!stated.empty()) record["stated"] = std::move(stated);
  return record;
}

}  // namespace tutti
