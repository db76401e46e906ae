#include "sim/cluster.h"

#include <algorithm>

#include "tutti/error.h"

namespace tutti {

int Cluster::devices() const {
  int sum = 0;
  for (const NodeGroup& group : groups) sum += group.count * group.devices;
  return sum;
}

Layout lay_out(const Cluster& cluster, int ranks) {
  if (ranks < 1 || ranks > cluster.devices())
    throw UsageError("cluster '{}' has {} devices, and {} are asked for; give it more nodes (--nodes, or its file)",
                     cluster.name, cluster.devices(), ranks);
  Layout layout;
  layout.ranks = ranks;
  layout.nodes = layout.per_node = 0;
  int left = ranks;
  for (const NodeGroup& group : cluster.groups) {
    if (left == 0) break;
    const int devices = std::min(left, group.count * group.devices);
    layout.nodes += (devices + group.devices - 1) / group.devices;
    layout.per_node = std::max(layout.per_node, std::min(devices, group.devices));
    layout.devices.push_back(group.device);
    left -= devices;
  }
  return layout;
}

}  // namespace tutti
