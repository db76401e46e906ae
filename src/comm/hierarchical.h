#pragma once

#include <memory>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

/// The groups that one rank of several nodes is in. Ranks are numbered node by node, and so are those of the groups.
struct NodeGroups {
  std::unique_ptr<Communicator> inside;   // the ranks of this rank's node
  std::unique_ptr<Communicator> leaders;  // the first rank of each node; null on all others
  std::unique_ptr<Communicator> all;      // everybody, for messages between two ranks
  std::vector<int> node_ranks;            // how many ranks each node has
};

/// Collectives that are made inside each node first, then among one rank per node, then inside again: what crosses the
/// network is one message per node instead of one per rank. Sums are made in rank order inside a node, then in node
/// order. Several collectives may be under way if all ranks wait for them in the order in which they were started.
std::unique_ptr<Communicator> make_hierarchical_communicator(NodeGroups groups);

}  // namespace tutti
