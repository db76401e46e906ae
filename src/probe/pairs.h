#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/nodes.h"
#include "tutti/communicator.h"

namespace tutti {

/// What one message from a rank to another costs.
struct PairFigures {
  int from = 0, to = 0;
  double latency_s = 0;    // half of a round trip of 8 bytes, the median
  double bytes_per_s = 0;  // of one long message and its short answer
};

void to_json(nlohmann::json& json, const PairFigures& pair);
void from_json(const nlohmann::json& json, PairFigures& pair);

using RankPair = std::pair<int, int>;

/// Which pairs of ranks to measure, and when: those of a round are disjoint and go at the same time. Small jobs: every
/// pair, each alone. Others: the first ranks of all nodes with each other, disjoint pairs of nodes at the same time
/// since they share no link, and in every node the first rank with the rest.
std::vector<std::vector<RankPair>> pair_rounds(const std::vector<Node>& nodes);

struct PairOptions {
  double seconds = 0.05;  // a message is long enough when it takes so long
  std::size_t most_bytes = 16 << 20;
};

/// Measures those pairs, in both directions. A collective; every rank gets all figures.
std::vector<PairFigures> measure_pairs(Communicator& comm, const std::vector<Node>& nodes, const PairOptions& options);

/// A pair, or all links of a node to others, much slower than the rest of its kind.
struct SlowLink {
  std::string text;  // "all links of n2 …: 0.09 Gbit/s, …"
  std::string host;  // of the node whose links are all slow; "" for a single pair
};

/// Those under half of what is usual at their level, inside a node or between nodes. Usual is the median over nodes of
/// each one's fastest pair, so one slow node among three is seen although most pairs have it at one end; or
/// `expected_bytes_per_s` between nodes, where it is not 0: with two nodes there is nothing else to compare with.
std::vector<SlowLink> find_slow_links(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes,
                                      double expected_bytes_per_s = 0);

/// The median of the bandwidths inside nodes or between them; 0 when there are none.
double median_bandwidth(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes, bool between_nodes);
double median_latency(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes, bool between_nodes);

/// For each rank the number of its node.
std::vector<std::size_t> node_of_ranks(const std::vector<Node>& nodes);

}  // namespace tutti
