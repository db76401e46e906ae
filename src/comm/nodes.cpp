#include "comm/nodes.h"

#include <unistd.h>

#include <algorithm>

#include "comm/exchange.h"

namespace tutti {

std::string this_host() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::vector<Node> group_by_host(const std::vector<std::string>& hosts) {
  std::vector<Node> nodes;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    auto known = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.host == hosts[rank]; });
    if (known == nodes.end()) known = nodes.insert(nodes.end(), {hosts[rank], {}});
    known->ranks.push_back(static_cast<int>(rank));
  }
  return nodes;
}

std::vector<Node> find_nodes(Communicator& comm) { return group_by_host(gather_texts(comm, this_host())); }

}  // namespace tutti
