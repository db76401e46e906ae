#pragma once

#include <string>
#include <vector>

#include "comm/nodes.h"
#include "tutti/records.h"

namespace tutti {

/// For records.
std::vector<NodeRanks> describe_nodes(const std::vector<Node>& nodes);

/// "Nodes: n0 (2), n1 (2)"
std::string list_nodes(const std::vector<Node>& nodes);

/// Each node's share of an epoch, from its ranks' samples and times.
std::vector<NodeEpoch> sum_up_by_node(const std::vector<Node>& nodes, const std::vector<RankEpoch>& ranks);

/// One line about one of them.
std::string node_line(const NodeEpoch& node);

}  // namespace tutti
