#include "train/node_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/rank_times.h"

namespace tutti {

using nlohmann::json;

json describe_nodes(const std::vector<Node>& nodes) {
  json all = json::array();
  for (const Node& node : nodes) all.push_back({{"host", node.host}, {"ranks", node.ranks}});
  return all;
}

std::string list_nodes(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes)
    text += fmt::format("{}{} ({})", text.empty() ? "Nodes: " : ", ", node.host, node.ranks.size());
  return text;
}

json sum_up_by_node(const std::vector<Node>& nodes, const std::vector<json>& ranks) {
  json all = describe_nodes(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    int64_t samples = 0;
    std::vector<json> own;
    for (const int rank : nodes[i].ranks) {
      own.push_back(ranks[static_cast<std::size_t>(rank)]);
      samples += own.back().at("samples").get<int64_t>();
    }
    const double train_s = largest(own, "train_s");
    all[i]["samples"] = samples;
    all[i]["data_per_s"] = static_cast<double>(samples) / std::max(train_s, 1e-9);
    all[i]["train_s"] = train_s;
    all[i]["comm_exposed_s"] = largest(own, "comm_exposed_s");
  }
  return all;
}

std::string node_line(const json& node) {
  const std::size_t ranks = node.at("ranks").size();
  return fmt::format("  node {}: {} rank{}, {:.1f} data/s, training {:.2f} s, communication {:.2f} s exposed",
                     node.at("host").get<std::string>(), ranks, ranks == 1 ? "" : "s",
                     node.at("data_per_s").get<double>(), node.at("train_s").get<double>(),
                     node.at("comm_exposed_s").get<double>());
}

}  // namespace tutti
