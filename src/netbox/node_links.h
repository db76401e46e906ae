#pragma once

#include <string>

#include "netbox/state.h"

namespace tutti::netbox {

/// Joins a node to the switch by a cable with both ends up; sets its address and how its TCP behaves. Both namespaces
/// and the switch's bridge must be there.
void connect(const Box& cluster, const BoxNode& node);

/// Makes the bridge that is the switch.
void make_bridge(const Box& cluster);

/// Shapes both directions of a node's link; takes effect at once, also on connections that are open.
void shape(const Box& cluster, const BoxNode& node, BitRate rate);

/// Unplugs a node from the switch, or plugs it in again. Connections stay open, and go on when TCP next tries.
void cut(const Box& cluster, const BoxNode& node);
void heal(const Box& cluster, const BoxNode& node);

/// How a link is now, as the kernel says.
struct LinkState {
  bool is_cut = false;
  BitRate out = 0;  // from the node
  BitRate in = 0;   // to the node
};
LinkState link_state(const Box& cluster, const BoxNode& node);

}  // namespace tutti::netbox
