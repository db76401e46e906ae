#pragma once

#include <vector>

#include "sim/cluster.h"
#include "tutti/plan.h"

namespace tutti {

/// What several transfers must take turns at. Servers have numbers of their own, from kFirstServer on.
enum Resource : int {
  kCoordinator,  // agrees on what is next
  kRing,         // the stream in which collectives run
  kInside,       // links inside a node, towards the host
  kInsideBack,   // and back
  kNodeOut,      // a node's network card, or the host behind it where that is what limits
  kNodeIn,
  kFirstServer,  // then, for each server: its card in, its sum, its card out
};
constexpr int kPerServer = 3;

/// A part of a transfer's way: it takes `launch_s` and then `seconds` of a resource, and arrives `delay_s` later at the
/// next one.
struct Stage {
  int resource = 0;
  double seconds = 0;
  double delay_s = 0;
  bool on_device = false;  // slows computation down, for `seconds`
  double beside_s = 0;     // instead of `seconds`, while the device computes; 0: as many
  double launch_s = 0;     // on the host, until the device has anything to do with it

  double alone_s() const { return launch_s + seconds + delay_s; }
};

/// The way of one transfer through the cluster.
std::vector<Stage> stages_of(const Transfer& transfer, const Plan& plan, const Cluster& cluster, const Layout& layout);

/// How long one such message takes alone.
double seconds_alone(const Transfer& transfer, const Plan& plan, const Cluster& cluster, const Layout& layout);

/// What a node sends over a collective's connections in a second.
double collective_bytes_per_s(const Link& network, int nodes);

/// The costs that strategies plan with, as a run would measure them on this cluster.
Links links_of(const Cluster& cluster, const Layout& layout, int servers);

}  // namespace tutti
