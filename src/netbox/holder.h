#pragma once

#include "netbox/state.h"

namespace tutti::netbox {

/// Starts the process that keeps a node's namespaces (network, host name, mounts) until it is killed: whoever enters
/// them later finds the same host name, /etc/hosts and /dev/shm. The node's network namespace and /etc/netns/…/hosts
/// must be there. The holder sleeps, holds no descriptor of ours and does not end with us. Returns its process id when
/// everything is in place; throws Error saying which step failed.
pid_t start_holder(const BoxNode& node);

/// The node's holder runs: its pid is not that of a later, unrelated process.
bool has_holder(const BoxNode& node);

}  // namespace tutti::netbox
