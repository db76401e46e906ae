#include "runlog/node_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

std::vector<NodeRanks> describe_nodes(const std::vector<Node>& nodes) {
  std::vector<NodeRanks> all;
  all.reserve(nodes.size());
  for (const Node& node : nodes) all.push_back({node.host, node.ranks});
  return all;
}

std::string list_nodes(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes)
    text += fmt::format("{}{} ({})", text.empty() ? "Nodes: " : ", ", node.host, node.ranks.size());
  return text;
}

std::vector<NodeEpoch> sum_up_by_node(const std::vector<Node>& nodes, const std::vector<RankEpoch>& ranks) {
  std::vector<NodeEpoch> all;
  for (const Node& node : nodes) {
    NodeEpoch sum;
    sum.host = node.host;
    sum.ranks = node.ranks;
    for (const int number : node.ranks) {
      const RankEpoch& rank = ranks[static_cast<std::size_t>(number)];
      sum.samples += rank.samples;
      sum.train_s = std::max(sum.train_s, rank.train_s);
      sum.comm_exposed_s = std::max(sum.comm_exposed_s, rank.comm_exposed_s);
    }
    sum.data_per_s = static_cast<double>(sum.samples) / std::max(sum.train_s, 1e-9);
    all.push_back(std::move(sum));
  }
  return all;
}

std::string node_line(const NodeEpoch& node) {
  return fmt::format("  node {}: {} rank{}, {:.1f} data/s, training {:.2f} s, communication {:.2f} s exposed",
                     node.host, node.ranks.size(), node.ranks.size() == 1 ? "" : "s", node.data_per_s, node.train_s,
                     node.comm_exposed_s);
}

}  // namespace tutti
