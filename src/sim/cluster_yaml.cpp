#include <yaml-cpp/yaml.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/names.h"
#include "sim/cluster.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kMostNodes = 100'000, kMostDevices = 1000;

using Setters = std::map<std::string, std::function<void(const YAML::Node&)>>;

[[noreturn]] void fail(const std::string& file, const YAML::Node& node, const std::string& what) {
  throw UsageError("{}:{}: {}", file, node.Mark().line + 1, what);
}

double number(const std::string& file, const YAML::Node& node, const std::string& key) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) || value < 0)
    fail(file, node, fmt::format("'{}' is a number that is not negative", key));
  return value;
}

/// A whole number of things: neither half a node nor more than anybody has.
int count(const std::string& file, const YAML::Node& node, const std::string& key, int most) {
  const double value = number(file, node, key);
  if (value != std::floor(value) || value > most)
    fail(file, node, fmt::format("'{}' is a whole number up to {}", key, most));
  return static_cast<int>(value);
}

/// Calls the setter of each key of a map; an unknown one is named with its nearest neighbour.
void read_map(const std::string& file, const YAML::Node& node, const std::string& what, const Setters& setters) {
  if (!node.IsMap()) fail(file, node, fmt::format("{} is lines like `key: value`", what));
  std::vector<std::string> known;
  for (const auto& setter : setters) known.push_back(setter.first);
  for (const auto& entry : node) {
    const auto setter = setters.find(entry.first.Scalar());
    if (setter == setters.end())
      fail(file, entry.first, unknown_name("key", entry.first.Scalar(), known) + " (in " + what + ")");
    setter->second(entry.second);
  }
}

/// A setter of a figure that the file has in a unit of its own, which is part of the key.
std::function<void(const YAML::Node&)> figure(const std::string& file, const char* key, double& target, double unit) {
  return [file, key, &target, unit](const YAML::Node& node) { target = number(file, node, key) * unit; };
}

Device read_device(const std::string& file, const YAML::Node& node) {
  Device device;
  read_map(file, node, "a device",
           {{"name", [&](const YAML::Node& value) { device.name = value.Scalar(); }},
            {"tflops", figure(file, "tflops", device.flop_per_s, 1e12)},
            {"memory_gb_per_s", figure(file, "memory_gb_per_s", device.memory_bytes_per_s, 1e9)},
            {"efficiency", figure(file, "efficiency", device.efficiency, 1)},
            {"convolution_efficiency", figure(file, "convolution_efficiency", device.convolution_efficiency, 1)},
            {"memory_efficiency", figure(file, "memory_efficiency", device.memory_efficiency, 1)},
            {"launch_us", figure(file, "launch_us", device.launch_s, 1e-6)},
            {"value_bytes", figure(file, "value_bytes", device.value_bytes, 1)},
            {"slowest_batch", figure(file, "slowest_batch", device.slowest_batch, 1)}});
  if (device.flop_per_s <= 0 || device.memory_bytes_per_s <= 0)
    fail(file, node, "a device needs tflops and memory_gb_per_s");
  for (const double efficiency : {device.efficiency, device.convolution_efficiency, device.memory_efficiency})
    if (efficiency <= 0 || efficiency > 1) fail(file, node, "an efficiency of a device is above 0 and at most 1");
  return device;
}

Link read_link(const std::string& file, const YAML::Node& node, const std::string& what) {
  Link link;
  read_map(file, node, what,
           {{"startup_us", figure(file, "startup_us", link.startup_s, 1e-6)},
            {"gb_per_s", figure(file, "gb_per_s", link.bytes_per_s, 1e9)},
            {"connection_gb_per_s", figure(file, "connection_gb_per_s", link.connection_bytes_per_s, 1e9)},
            {"connections", figure(file, "connections", link.connections, 1)},
            {"duplex", figure(file, "duplex", link.duplex, 1)},
            {"jitter", figure(file, "jitter", link.jitter, 1)}});
  if (link.bytes_per_s <= 0) fail(file, node, fmt::format("{} needs gb_per_s", what));
  if (link.connections < 1) fail(file, node, fmt::format("'connections' of {} are at least 1", what));
  if (link.duplex < 1 || link.duplex > 2) fail(file, node, fmt::format("'duplex' of {} is 1 to 2", what));
  return link;
}

Software read_software(const std::string& file, const YAML::Node& node) {
  Software software;
  double sum_gb = 0;
  const auto max_in_flight = [&](const YAML::Node& value) {
    software.max_in_flight = count(file, value, "max_in_flight", 1'000'000);
  };
  read_map(
      file, node, "software",
      {{"negotiation_us", figure(file, "negotiation_us", software.negotiation_s, 1e-6)},
       {"negotiation_per_doubling_us",
        figure(file, "negotiation_per_doubling_us", software.negotiation_per_doubling_s, 1e-6)},
       {"scheduled_cycle_us", figure(file, "scheduled_cycle_us", software.scheduled_cycle_s, 1e-6)},
       {"max_in_flight", max_in_flight},
       {"under_way", max_in_flight},  // its name until version 0.2
       {"launch_us", figure(file, "launch_us", software.launch_s, 1e-6)},
       {"stage_launch_us", figure(file, "stage_launch_us", software.stage_launch_s, 1e-6)},
       {"slowdown", figure(file, "slowdown", software.slowdown, 1)},
       {"transfer_slowdown", figure(file, "transfer_slowdown", software.transfer_slowdown, 1)},
       {"sgd_launch_us", figure(file, "sgd_launch_us", software.sgd_launch_s, 1e-6)},
       {"adam_launch_us", figure(file, "adam_launch_us", software.adam_launch_s, 1e-6)},
       {"unmerge_us", figure(file, "unmerge_us", software.unmerge_s, 1e-6)},
       {"update_bytes", figure(file, "update_bytes", software.update_bytes, 1)},
       {"scheduled_sgd_us", figure(file, "scheduled_sgd_us", software.scheduled_sgd_s, 1e-6)},
       {"scheduled_adam_us", figure(file, "scheduled_adam_us", software.scheduled_adam_s, 1e-6)},
       {"server_sum_gb_per_s", figure(file, "server_sum_gb_per_s", sum_gb, 1)},
       {"asks_for_sums", [&](const YAML::Node& value) { software.asks_for_sums = value.Scalar() == "true"; }},
       {"colocated_servers", [&](const YAML::Node& value) { software.colocated_servers = value.Scalar() == "true"; }}});
  software.server_sum_bytes_per_s = sum_gb * 1e9;
  return software;
}

Collective read_collective(const std::string& file, const YAML::Node& node) {
  const std::map<std::string, Collective> words = {{"auto", Collective::automatic},
                                                   {"ring", Collective::ring},
                                                   {"hierarchical", Collective::hierarchical},
                                                   {"tree", Collective::tree}};
  const auto found = words.find(node.Scalar());
  if (found == words.end()) fail(file, node, "collective is auto, ring, hierarchical or tree");
  return found->second;
}

NodeGroup read_group(const std::string& file, const YAML::Node& node) {
  NodeGroup group;
  read_map(file, node, "a group of nodes",
           {{"count", [&](const YAML::Node& value) { group.count = count(file, value, "count", kMostNodes); }},
            {"devices", [&](const YAML::Node& value) { group.devices = count(file, value, "devices", kMostDevices); }},
            {"device", [&](const YAML::Node& value) { group.device = read_device(file, value); }}});
  if (group.count < 1 || group.devices < 1 || group.device.flop_per_s <= 0)
    fail(file, node, "a group of nodes needs count, devices and device");
  return group;
}

}  // namespace

Cluster parse_cluster(const std::string& text, const std::string& file) {
  Cluster cluster;
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) throw UsageError("{}: a cluster file has lines like `network: …`", file);
    read_map(file, root, "a cluster",
             {{"name", [&](const YAML::Node& node) { cluster.name = node.Scalar(); }},
              {"about", [&](const YAML::Node& node) { cluster.about = node.Scalar(); }},
              {"nodes",
               [&](const YAML::Node& node) {
                 if (!node.IsSequence()) fail(file, node, "nodes is a list of groups of equal nodes");
                 for (const YAML::Node& group : node) cluster.groups.push_back(read_group(file, group));
               }},
              {"inside", [&](const YAML::Node& node) { cluster.inside = read_link(file, node, "inside"); }},
              {"network", [&](const YAML::Node& node) { cluster.network = read_link(file, node, "network"); }},
              {"collective", [&](const YAML::Node& node) { cluster.collective = read_collective(file, node); }},
              {"software", [&](const YAML::Node& node) { cluster.software = read_software(file, node); }}});
  } catch (const YAML::Exception& error) {
    throw UsageError("{}:{}: not YAML: {}", file, error.mark.line + 1, error.msg);
  }
  if (cluster.groups.empty()) throw UsageError("{}: a cluster needs nodes", file);
  if (cluster.inside.bytes_per_s <= 0 && cluster.network.bytes_per_s <= 0)
    throw UsageError("{}: a cluster needs inside or network", file);
  if (cluster.network.bytes_per_s <= 0 && (cluster.groups.size() > 1 || cluster.groups[0].count > 1))
    throw UsageError("{}: several nodes need network: what is between them", file);
  if (cluster.inside.bytes_per_s <= 0) cluster.inside = cluster.network;
  if (cluster.network.bytes_per_s <= 0) cluster.network = cluster.inside;
  return cluster;
}

}  // namespace tutti
