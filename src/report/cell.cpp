#include "report/cell.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

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
  if (cell.environment) record["environment"] = *cell.environment;
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
