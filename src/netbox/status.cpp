#include "netbox/status.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "netbox/holder.h"
#include "netbox/processes.h"
#include "netbox/run.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr const char* kPort = "5299";

/// iperf3 that serves one test, for as long as this lives.
class Server {
 public:
  explicit Server(const BoxNode& node) {
    const Fd nothing = open_null();
    ChildStart server;
    server.words = inside(node, {"iperf3", "-s", "-1", "-p", kPort});
    server.stdin_fd = server.stdout_fd = server.stderr_fd = nothing.get();
    pid_ = start_child(server);
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    wait_for_child(pid_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  pid_t pid_ = 0;
};

double goodput(const BoxNode& from, const BoxNode& to, double seconds) {
  static const nlohmann::json::json_pointer kReceived("/end/sum_received/bits_per_second");
  const Server server(to);
  const std::vector<std::string> client = inside(from, {"iperf3", "-J", "-c", to.address, "-p", kPort, "-t",
                                                        fmt::format("{:.0f}", seconds), "--connect-timeout", "2000"});
  for (const auto start = Clock::now();;) {
    const ToolResult result = run_tool(client);
    // With -J errors are in the answer, and the exit code may be 0 all the same.
    const nlohmann::json answer = nlohmann::json::parse(result.output, nullptr, false);
    const bool is_answer = answer.is_object();
    if (is_answer && answer.contains(kReceived)) return answer.at(kReceived).get<double>();
    // Refused at first, until the server listens.
    if (seconds_since(start) > 3) {
      throw Error("iperf3 from {} to {}: {}", from.name, to.name,
                  is_answer ? answer.value("error", result.errors) : result.errors);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::vector<NodeStatus> node_statuses(const Box& cluster) {
  std::vector<NodeStatus> statuses;
  for (const BoxNode& node : cluster.nodes) {
    NodeStatus status;
    status.node = node;
    if (!has_holder(node)) {
      status.state = "down";
    } else {
      status.link = link_state(cluster, node);
      status.processes = static_cast<int>(processes_in(node.net_namespace).size()) - 1;
      const bool paused = is_paused(node);
      status.state = status.link.is_cut ? (paused ? "cut, paused" : "cut") : (paused ? "paused" : "up");
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

void measure(const Box& cluster, std::vector<NodeStatus>& statuses, double seconds) {
  if (find_program("iperf3").empty()) throw Error("--measure needs iperf3: apt-get install iperf3");
  if (cluster.nodes.size() < 2) throw Error("--measure needs two nodes; cluster '{}' has one", cluster.name);
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const NodeStatus& next = statuses[(i + 1) % statuses.size()];
    if (statuses[i].state == "up" && next.state == "up")
      statuses[i].goodput_to_next = goodput(statuses[i].node, next.node, seconds);
  }
}

std::string describe(const Network& network) {
  if (network.name.empty()) return format_rate(network.carried);
  if (!network.is_scaled()) return fmt::format("{} ({})", network.name, format_rate(network.carried));
  return fmt::format("{} SCALED to {}: 1/{:g} of its rate, which this machine cannot carry", network.name,
                     format_rate(network.carried), network.scale());
}

std::string status_text(const Box& cluster, const std::vector<NodeStatus>& statuses, const MachineLoad& load) {
  bool is_measured = false;
  for (const NodeStatus& status : statuses) is_measured |= status.goodput_to_next > 0;
  std::string text = fmt::format("cluster '{}', network {}\n\n", cluster.name, describe(cluster.network));
  text += fmt::format("{:<6} {:<12} {:<12} {:>5} {:>10} {:>10} {:>10}{}\n", "node", "address", "state", "slots",
                      "processes", "rate out", "rate in", is_measured ? "  goodput to next" : "");
  for (const NodeStatus& status : statuses) {
    const bool is_down = status.state == "down";
    text += fmt::format("{:<6} {:<12} {:<12} {:>5} {:>10} {:>10} {:>10}", status.node.name, status.node.address,
                        status.state, status.node.slots, is_down ? "-" : std::to_string(status.processes),
                        is_down ? "-" : format_rate(status.link.out), is_down ? "-" : format_rate(status.link.in));
    if (is_measured) {
      text += fmt::format(
          "  {:>15}", status.goodput_to_next > 0 ? fmt::format("{:.0f} Mbit/s", status.goodput_to_next / 1e6) : "-");
    }
    text += "\n";
  }
  text += fmt::format("\nsteal {:.1f} %, idle {:.1f} %{}\n", load.steal, load.idle,
                      load.steal > 3 ? ": others use this machine's processors; links fall below their rates" : "");
  return text;
}

nlohmann::json status_json(const Box& cluster, const std::vector<NodeStatus>& statuses, const MachineLoad& load) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeStatus& status : statuses) {
    const bool is_down = status.state == "down";
    const auto if_up = [&](const nlohmann::json& value) { return is_down ? nlohmann::json() : value; };
    nodes.push_back(
        {{"name", status.node.name},
         {"address", status.node.address},
         {"state", status.state},
         {"slots", status.node.slots},
         {"processes", if_up(status.processes)},
         {"bits_per_s_out", if_up(status.link.out)},
         {"bits_per_s_in", if_up(status.link.in)},
         {"goodput_to_next", status.goodput_to_next > 0 ? nlohmann::json(status.goodput_to_next) : nlohmann::json()}});
  }
  return {{"name", cluster.name},
          {"network", cluster.network.name},
          {"bits_per_s", cluster.network.carried},
          {"scale", cluster.network.scale()},
          {"nodes", nodes},
          {"steal_percent", load.steal},
          {"idle_percent", load.idle}};
}

}  // namespace tutti::netbox
