#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/computed_profile.h"
#include "tutti/links.h"

namespace tutti {

/// What carries messages between processors of a node, or between nodes (then of one node, all its cards together).
struct Link {
  double startup_s = 0;               // until the first byte is there
  double bytes_per_s = 0;             // in one direction
  double connection_bytes_per_s = 0;  // of one TCP connection; 0: one fills the link
  double connections = 1;             // that a collective opens
  double duplex = 2;                  // both directions together carry this many times bytes_per_s: 1 to 2
  double jitter = 0;  // the slowest of N nodes is slower by this times log2 N: a ring runs at its slowest link
};

enum class Collective { automatic, ring, hierarchical, tree };

/// What the system that runs the plan costs, apart from links and computation.
struct Software {
  double negotiation_s = 0;               // per transfer: ranks agree that it is next
  double negotiation_per_doubling_s = 0;  // and that takes longer with each doubling of their number
  double scheduled_cycle_s = 0;           // collectives of plans that cross steps start at multiples of this
  int max_in_flight = 0;                  // transfers at once; 0: as many as the plan says
  double launch_s = 0;                    // per transfer: a collective is launched
  double stage_launch_s = 0;              // per push_pull: its copies are launched
  double slowdown = 0;                    // computation takes 1 + this times as long while transfers run on the device
  double transfer_slowdown = 0;           // and they take 1 + this times as long on the device while it computes
  double sgd_launch_s = 0;                // optimizer, per tensor: launches that no longer hide behind backward
  double adam_launch_s = 0;
  double unmerge_s = 0;        // per tensor that travelled with others: its gradient is found again after the last one
  double update_bytes = 0;     // optimizer: bytes that it moves per parameter
  double scheduled_sgd_s = 0;  // per transfer of plans that cross steps: polling and its own update
  double scheduled_adam_s = 0;
  double server_sum_bytes_per_s = 0;  // that a server adds up; 0: at once
  bool asks_for_sums = false;         // a worker asks for each sum, behind its pushes that wait to be sent
  bool colocated_servers = false;     // on the nodes that train
  /// As our engine does it: slices are updated by the thread that starts transfers when it has none to carry, or by the
  /// one that computes while it waits. Otherwise updates take nobody's time.
  bool updates_take_turns = false;
};

/// Nodes that are alike.
struct NodeGroup {
  int count = 1;
  int devices = 1;  // per node
  Device device;
};

/// Where one trains: what a cluster file says.
struct Cluster {
  std::string name;
  std::string about;
  std::vector<NodeGroup> groups;
  Link inside;   // between devices of a node
  Link network;  // between nodes
  Collective collective = Collective::automatic;
  Software software;
  bool is_from_links = false;  // its nodes are those that were measured; a plan may ask for more like them
  /// What messages between the ranks of a run cost, as it measured them itself: taken instead of the links.
  std::optional<Links> measured;

  int devices() const;
};

/// The part of a cluster that a number of ranks takes: whole nodes, in order, the last one perhaps in part.
struct Layout {
  int ranks = 1;
  int nodes = 1;
  int per_node = 1;             // ranks of the fullest node
  std::vector<Device> devices;  // the different ones among them
};

/// Throws UsageError when the cluster has fewer devices.
Layout lay_out(const Cluster& cluster, int ranks);

/// The cluster file `name`.yaml of the shipped folder, a YAML file, or the links file of `tutti probe`. Throws
/// UsageError with the place of what cannot be read.
Cluster load_cluster(const std::string& name_or_file);
Cluster parse_cluster(const std::string& text, const std::string& file);
/// From a links file: the costs that `tutti probe` measured inside a node and between nodes, and one node group.
Cluster cluster_from_links(const std::string& text, const std::string& file);
std::vector<std::string> shipped_clusters();

}  // namespace tutti
