#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/nodes.h"

namespace tutti {

/// For records: [{"host": "n0", "ranks": [0, 1]}, …].
nlohmann::json describe_nodes(const std::vector<Node>& nodes);

/// "Nodes: n0 (2), n1 (2)"
std::string list_nodes(const std::vector<Node>& nodes);

/// Each node's share of an epoch, from its ranks' samples and times.
nlohmann::json sum_up_by_node(const std::vector<Node>& nodes, const std::vector<nlohmann::json>& ranks);

/// One line about an entry of sum_up_by_node().
std::string node_line(const nlohmann::json& node);

}  // namespace tutti
