#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/cpu_times.h"
#include "netbox/node_links.h"
#include "netbox/state.h"

namespace tutti::netbox {

struct NodeStatus {
  BoxNode node;
  std::string state;  // up, cut, paused, "cut, paused" or down (its holder is gone)
  int processes = 0;  // but for the holder
  LinkState link;
  double goodput_to_next = 0;  // bits per second; 0 when not measured
};

/// How all nodes are now.
std::vector<NodeStatus> node_statuses(const Box& cluster);

/// Sends with iperf3 from each node to the next (the last one to the first), one at a time, for so many seconds, and
/// fills in goodput_to_next. Throws Error when iperf3 is not there; skips nodes that are not up.
void measure(const Box& cluster, std::vector<NodeStatus>& statuses, double seconds);

/// What `tutti cluster status` prints.
std::string status_text(const Box& cluster, const std::vector<NodeStatus>& statuses, const MachineLoad& load);

/// The same for programs.
nlohmann::json status_json(const Box& cluster, const std::vector<NodeStatus>& statuses, const MachineLoad& load);

/// "10gbe carried at 1gbit: 1/10 of its rate; …" or "1gbe". For people.
std::string describe(const Network& network);

}  // namespace tutti::netbox
