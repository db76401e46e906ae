#include "report/config_columns.h"

#include <algorithm>

namespace tutti {
namespace {

const std::vector<ConfigColumn>& all_columns() {
  using C = Configuration;
  static const std::vector<ConfigColumn> columns = {
      {{"model", "model"}, [](const C& c) { return text_value(c.model); }},
      {{"data", "data"}, [](const C& c) { return text_value(c.data); }},
      {{"batch", "batch", "number"}, [](const C& c) { return whole_value(c.batch, 0); }},
      {{"network", "network"}, [](const C& c) { return text_value(c.network); }},
      {{"strategy", "strategy"}, [](const C& c) { return text_value(c.strategy); }},
      {{"wire", "wire"}, [](const C& c) { return text_value(c.wire); }},
      {{"transport", "transport"}, [](const C& c) { return text_value(c.transport); }},
      {{"precision", "precision"}, [](const C& c) { return text_value(c.precision); }},
      {{"device", "device"}, [](const C& c) { return text_value(c.device); }},
      {{"workers", "workers", "number"}, [](const C& c) { return whole_value(c.workers, -1); }},
      {{"servers", "servers", "number"}, [](const C& c) { return whole_value(c.servers, -1); }},
      {{"other", "other"}, [](const C& c) { return text_value(c.further()); }},
      {{"nodes", "nodes", "number"}, [](const C& c) { return whole_value(c.nodes, 0); }},
      {{"ranks", "ranks", "number"}, [](const C& c) { return whole_value(c.ranks, 0); }},
  };
  return columns;
}

bool is_in(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::vector<ConfigColumn> config_columns(const std::vector<const Configuration*>& configs,
                                         const std::vector<std::string>& keys,
                                         const std::vector<std::string>& left_out) {
  std::vector<ConfigColumn> columns;
  const auto is_stated = [&configs](const ConfigColumn& column) {
    return std::any_of(configs.begin(), configs.end(),
                       [&](const Configuration* config) { return !column.value(*config).text.empty(); });
  };
  for (const std::string& key : keys)
    for (const ConfigColumn& column : all_columns())
      if (column.column.key == key && is_stated(column)) columns.push_back(column);
  for (const ConfigColumn& column : all_columns()) {
    if (is_in(keys, column.column.key) || is_in(left_out, column.column.key)) continue;
    const bool differs = std::any_of(configs.begin(), configs.end(), [&](const Configuration* config) {
      return column.value(*config).text != column.value(*configs.front()).text;
    });
    if (differs) columns.push_back(column);
  }
  for (ConfigColumn& column : columns) {
    column.column.role = ColumnRole::setting;
    if (column.column.key == "ranks") column.column.label = rank_word(configs);
  }
  return columns;
}

std::string rank_word(const std::vector<const Configuration*>& configs) {
  const bool all_gpus = std::all_of(configs.begin(), configs.end(), [](const Configuration* config) {
    return config->device.rfind("cuda", 0) == 0 || config->device.rfind("gpu", 0) == 0;
  });
  return all_gpus && !configs.empty() ? "GPUs" : "ranks";
}

}  // namespace tutti
