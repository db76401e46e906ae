#include "netbox/box.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/process.h"
#include "base/signals.h"
#include "netbox/holder.h"
#include "netbox/mpi_files.h"
#include "netbox/node_links.h"
#include "netbox/processes.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNodes = 200;  // addresses are 10.77.0.1 and following
constexpr const char* kHostFolders = "/etc/netns";
constexpr const char* kNamespaces = "/run/netns";

void stop_if_told(StopSignals& signals) {
  if (signals.first() != 0) throw Error("interrupted");
}

std::vector<std::string> entries_of(const char* folder, const std::string& cluster) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (is_namespace_of(cluster, name)) names.push_back(name);
  }
  return names;
}

void remove(const std::string& name, const Remains& remains) {
  // Processes first, and names last: what is interrupted here is found again by name.
  kill_processes(remains.net_namespaces);
  for (const std::string& name_space : remains.net_namespaces) {
    const ToolResult result = run_tool({"ip", "netns", "delete", name_space});
    // One whose making was interrupted may be a plain file, which `ip` cannot unmount but does remove.
    const fs::path path = fs::path(kNamespaces) / name_space;
    if (result.exit_code != 0 && fs::exists(path) && ::unlink(path.c_str()) != 0)
      throw Error("cannot remove the network namespace {}: {}", name_space, result.errors);
  }
  for (const std::string& folder : remains.host_folders) remove_tree(fs::path(kHostFolders) / folder);
  ::rmdir(kHostFolders);  // only if it is empty
  remove_tree(state_folder(name));
}

Box describe(const UpOptions& options) {
  Box cluster;
  cluster.name = options.name;
  cluster.network = options.network;
  for (std::size_t i = 0; i < options.slots.size(); ++i) {
    BoxNode node;
    node.name = fmt::format("n{}", i);
    node.net_namespace = namespace_prefix(options.name) + node.name;
    node.port = fmt::format("p{}", i);
    node.address = fmt::format("10.77.0.{}", i + 1);
    node.slots = options.slots[i];
    node.rate = options.network.carried;
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

/// The same for all nodes. Without the outer machine's name: programs would take it for one of the nodes.
std::string hosts_text(const Box& cluster) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const BoxNode& node : cluster.nodes) text += fmt::format("{} {}\n", node.address, node.name);
  return text;
}

void build(Box& cluster, StopSignals& signals) {
  make_folders(state_folder(cluster.name));
  must_run({"ip", "netns", "add", cluster.switch_namespace()});
  make_bridge(cluster);
  const std::string hosts = hosts_text(cluster);
  for (BoxNode& node : cluster.nodes) {
    stop_if_told(signals);
    must_run({"ip", "netns", "add", node.net_namespace});
    const fs::path folder = fs::path(kHostFolders) / node.net_namespace;
    make_folders(folder);
    write_file_atomically(folder / "hosts", hosts);
    connect(cluster, node);
    shape(cluster, node, node.rate);
    node.holder = start_holder(node);
  }
  write_mpi_files(cluster);
  stop_if_told(signals);
  save(cluster);  // last: a cluster without it is a leftover
}

bool is_whole(const Box& cluster) { return std::all_of(cluster.nodes.begin(), cluster.nodes.end(), has_holder); }

void check(const UpOptions& options) {
  check_cluster_name(options.name);
  if (options.slots.empty() || options.slots.size() > kMostNodes)
    throw UsageError("cannot make {} nodes: 1 to {} are possible (--nodes)", options.slots.size(), kMostNodes);
  for (const int slots : options.slots) {
    if (slots < 1) throw UsageError("a node cannot have {} slots: at least one (--slots, --ranks-per-node)", slots);
  }
}

}  // namespace

Remains find_remains(const std::string& name) {
  return {entries_of(kNamespaces, name), entries_of(kHostFolders, name), fs::exists(state_folder(name))};
}

Remains down(const std::string& name) {
  check_cluster_name(name);
  const StateLock lock;
  Remains remains = find_remains(name);
  remove(name, remains);
  return remains;
}

UpResult up(const UpOptions& options) {
  check(options);
  const StateLock lock;
  UpResult result{describe(options)};
  const Remains remains = find_remains(options.name);
  if (!remains.is_empty()) {
    std::optional<Box> there;
    try {
      there = load_if_there(options.name);
    } catch (const Error&) {  // not readable: a leftover
    }
    const bool is_up = there && is_whole(*there);
    if (is_up && !options.replace) {
      throw Error(
          "cluster '{}' is up already, with {} nodes. --replace rebuilds it, `tutti cluster down` removes it, "
          "--name makes another.",
          options.name, there->nodes.size());
    }
    result.had_leftovers = !is_up;
    remove(options.name, remains);
  }
  StopSignals signals;  // only noted, so that we can remove what is half built
  try {
    build(result.cluster, signals);
  } catch (const Error& error) {
    remove(options.name, find_remains(options.name));
    throw Error("cannot bring up cluster '{}': {}. What was built of it is removed again.", options.name,
                signals.first() != 0 ? "interrupted" : error.what());
  }
  return result;
}

}  // namespace tutti::netbox
