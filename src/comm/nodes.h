#pragma once

#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

/// A machine of the job.
struct Node {
  std::string host;
  std::vector<int> ranks;
};

/// Machines by their host names, given for each rank, in the order of their first ranks.
std::vector<Node> group_by_host(const std::vector<std::string>& hosts);

/// The machines of the job. A collective.
std::vector<Node> find_nodes(Communicator& comm);

/// What this machine calls itself.
std::string this_host();

}  // namespace tutti
