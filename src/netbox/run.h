#pragma once

#include <string>
#include <vector>

#include "netbox/state.h"

namespace tutti::netbox {

/// The words that run a command in a node, in the current folder: a command of its own.
std::vector<std::string> inside(const BoxNode& node, const std::vector<std::string>& command);

/// Whether the node's processes are stopped.
bool is_paused(const BoxNode& node);

/// Throws Error saying what to do when nothing can be started in the node: its holder is gone, or it is paused.
void check_usable(const Box& cluster, const BoxNode& node);

/// Sets the environment for programs in the nodes (see node_environment()). What is set already stays, but for the
/// mapping when `map_by` (node or slot) says something.
void set_node_environment(const Box& cluster, const std::string& map_by);

/// Runs a command in all of these nodes at once, without stdin; each line of output begins with "[n1] ". SIGINT,
/// SIGTERM and SIGHUP go on to all; a second SIGINT kills. Returns 0 when all succeeded, else the exit code of the
/// first node that failed (128 + signal when it was killed), after a line that names it. One call at a time in a
/// process.
int run_in_all(const std::vector<BoxNode>& nodes, const std::vector<std::string>& command);

}  // namespace tutti::netbox
