#pragma once

#include <map>
#include <string>

#include "netbox/state.h"

namespace tutti::netbox {

/// Writes what lets mpirun reach the other nodes without ssh into the state folder: `hostfile`, and `rsh`, a script
/// that runs a command on a node (rsh HOST COMMAND…) and needs nothing of Tutti.
void write_mpi_files(const Box& cluster);

/// The text of that script.
std::string rsh_script(const Box& cluster);

/// Environment variables for programs in a node: with them a plain `mpirun -np 4 program` runs across the nodes. Fills
/// the nodes' slots in order, or goes round them with `by_node`. Variables that are set already are the user's choice
/// and should win.
std::map<std::string, std::string> node_environment(const Box& cluster, bool by_node);

}  // namespace tutti::netbox
