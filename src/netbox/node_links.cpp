#include "netbox/node_links.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/process.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr const char* kBridge = "br0";
constexpr const char* kDevice = "eth0";
constexpr const char* kSubnet = "10.77.0.0/24";

void shape_end(const std::string& name_space, const std::string& device, BitRate rate) {
  if (rate == 0) {
    run_tool({"tc", "-n", name_space, "qdisc", "del", "dev", device, "root"});  // there may be none
    return;
  }
  must_run({"tc", "-n", name_space, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
            fmt::format("{}bit", rate), "burst", fmt::format("{}b", burst_bytes(rate)), "latency", "20ms"});
}

nlohmann::json ask(const std::vector<std::string>& words) {
  const std::string text = must_run(words);
  try {
    return text.empty() ? nlohmann::json::array() : nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) {
    throw Error("`{}` did not print JSON; a newer iproute2 does (tested: 6.1)", words[0]);
  }
}

BitRate rate_of_end(const std::string& name_space, const std::string& device) {
  for (const auto& qdisc : ask({"tc", "-n", name_space, "-j", "qdisc", "show", "dev", device})) {
    if (qdisc.value("kind", "") == "tbf") return qdisc.at("options").at("rate").get<BitRate>() * 8;
  }
  return 0;
}

}  // namespace

void make_bridge(const Box& cluster) {
  const std::string ns = cluster.switch_namespace();
  // No waiting for a spanning tree: a healed link is to work at once.
  must_run({"ip", "-n", ns, "link", "add", kBridge, "type", "bridge", "stp_state", "0", "forward_delay", "0"});
  must_run({"ip", "-n", ns, "link", "set", kBridge, "up"});
}

void connect(const Box& cluster, const BoxNode& node) {
  const std::string& ns = node.net_namespace;
  const std::string hub = cluster.switch_namespace();
  must_run({"ip", "-n", ns, "link", "add", kDevice, "type", "veth", "peer", "name", node.port, "netns", hub});
  must_run({"ip", "-n", ns, "link", "set", "lo", "up"});
  must_run({"ip", "-n", ns, "addr", "add", node.address + "/24", "dev", kDevice});
  must_run({"ip", "-n", ns, "link", "set", kDevice, "up"});
  // The system's default may be BBR, which is bursty here. Where the kernel lacks cubic, the default stays.
  run_tool({"ip", "-n", ns, "route", "replace", kSubnet, "dev", kDevice, "src", node.address, "congctl", "cubic"});
  must_run({"ip", "-n", hub, "link", "set", node.port, "master", kBridge, "up"});
}

void shape(const Box& cluster, const BoxNode& node, BitRate rate) {
  shape_end(node.net_namespace, kDevice, rate);
  shape_end(cluster.switch_namespace(), node.port, rate);
}

void cut(const Box& cluster, const BoxNode& node) {
  must_run({"ip", "-n", cluster.switch_namespace(), "link", "set", node.port, "down"});
}

void heal(const Box& cluster, const BoxNode& node) {
  must_run({"ip", "-n", cluster.switch_namespace(), "link", "set", node.port, "up"});
}

LinkState link_state(const Box& cluster, const BoxNode& node) {
  LinkState state;
  const std::string hub = cluster.switch_namespace();
  for (const auto& link : ask({"ip", "-n", hub, "-j", "link", "show", "dev", node.port})) {
    const nlohmann::json& flags = link.at("flags");
    state.is_cut = std::find(flags.begin(), flags.end(), "UP") == flags.end();
  }
  state.out = rate_of_end(node.net_namespace, kDevice);
  state.in = rate_of_end(hub, node.port);
  return state;
}

}  // namespace tutti::netbox
