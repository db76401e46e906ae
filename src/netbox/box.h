#pragma once

#include <string>
#include <vector>

#include "netbox/state.h"

namespace tutti::netbox {

struct UpOptions {
  std::string name = "tutti";
  std::vector<int> slots = {1, 1, 1, 1};  // one entry per node
  Network network;
  bool replace = false;  // take down one of this name that is up
};

struct UpResult {
  Box cluster;
  bool had_leftovers = false;  // of a cluster of this name that was not taken down properly; they are gone
};

/// Builds a cluster of network namespaces: see docs/reference/cluster.md. Needs root. When it fails or is interrupted
/// (SIGINT, SIGTERM, SIGHUP) nothing stays behind. Throws Error when one of this name is up already.
UpResult up(const UpOptions& options);

/// What a cluster, or what is left of one, has on this machine.
struct Remains {
  std::vector<std::string> net_namespaces;
  std::vector<std::string> host_folders;  // in /etc/netns
  bool has_state = false;

  bool is_empty() const { return net_namespaces.empty() && host_folders.empty() && !has_state; }
};
Remains find_remains(const std::string& name);

/// Kills everything that runs in the cluster's nodes and removes all it has, however complete. Touches nothing else.
/// Returns what there was. Takes the lock; `up` and `down` of the same process do not nest.
Remains down(const std::string& name);

}  // namespace tutti::netbox
