#include "cli/cluster_command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/process.h"
#include "cli/json_output.h"
#include "netbox/box.h"
#include "netbox/needs.h"
#include "netbox/network.h"
#include "netbox/node_links.h"
#include "netbox/processes.h"
#include "netbox/run.h"
#include "netbox/status.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using namespace netbox;

constexpr double kMeasureSeconds = 2;
constexpr std::chrono::milliseconds kLoadWindow{500};

struct ClusterArguments {
  std::string name = "tutti";
  int nodes = 4;
  int ranks_per_node = 1;
  std::vector<int> slots;
  std::string network;
  std::string rate;
  bool replace = false;
  std::vector<std::string> chosen;  // nodes
  bool all = false;
  bool measure = false;
  bool as_json = false;
  std::string node;
  std::string map_by;
  std::vector<std::string> command;
};

// ---- choices ----

unsigned cores() { return std::max(1U, std::thread::hardware_concurrency()); }

Network chosen_network(const ClusterArguments& arguments) {
  if (!arguments.rate.empty() && !arguments.network.empty())
    throw UsageError("--rate and --network both say how fast links are: give one of them");
  if (arguments.rate.empty()) return find_network(arguments.network.empty() ? "1gbe" : arguments.network, cores());
  const BitRate rate = parse_rate(arguments.rate);
  return {"", rate, rate};
}

void print_network(const Network& network) {
  fmt::print("links: {}\n", describe(network));
  if (network.is_scaled()) {
    fmt::print("       slow down computation {:g} times as well, or compare strategies on this scale only\n",
               network.scale());
  } else if (network.carried > carried_limit(cores())) {
    fmt::print("       {} cores may not carry that; `tutti cluster status --measure` shows what arrives\n", cores());
  }
}

std::vector<BoxNode> chosen_nodes(const Box& cluster, const ClusterArguments& arguments, const char* verb,
                                  bool none_means_all) {
  if (arguments.all && !arguments.chosen.empty()) throw UsageError("give nodes or --all, not both");
  if (arguments.chosen.empty()) {
    if (!arguments.all && !none_means_all)
      throw UsageError("which node? `tutti cluster {} {}`, or --all", verb, cluster.nodes.back().name);
    return cluster.nodes;
  }
  std::vector<BoxNode> nodes;
  for (const std::string& name : arguments.chosen) nodes.push_back(cluster.node(name));
  return nodes;
}

std::string name_option(const ClusterArguments& arguments) {
  return arguments.name == "tutti" ? "" : " --name " + arguments.name;
}

// ---- the commands ----

int up_command(const ClusterArguments& arguments, const CLI::App& given) {
  UpOptions options;
  options.name = arguments.name;
  options.network = chosen_network(arguments);
  options.replace = arguments.replace;
  options.slots = arguments.slots;
  if (options.slots.empty()) {
    if (arguments.nodes < 1 || arguments.nodes > 200)
      throw UsageError("--nodes {}: 1 to 200 are possible", arguments.nodes);
    options.slots.assign(static_cast<std::size_t>(arguments.nodes), arguments.ranks_per_node);
  } else if (given.count("--nodes") > 0 && options.slots.size() != static_cast<std::size_t>(arguments.nodes)) {
    throw UsageError("--slots has {} entries, one per node, but --nodes is {}", options.slots.size(), arguments.nodes);
  } else if (given.count("--ranks-per-node") > 0) {
    throw UsageError("--slots and --ranks-per-node both say how many ranks a node takes: give one of them");
  }
  const UpResult result = up(options);
  if (result.had_leftovers) fmt::print("removed what was left of an earlier cluster '{}'\n", arguments.name);
  const std::vector<BoxNode>& nodes = result.cluster.nodes;
  int slots = 0;
  for (const BoxNode& node : nodes) slots += node.slots;
  fmt::print("cluster '{}' is up: {} nodes, {} to {} ({} to {}), {} slots\n", arguments.name, nodes.size(),
             nodes.front().name, nodes.back().name, nodes.front().address, nodes.back().address, slots);
  print_network(result.cluster.network);
  fmt::print("try:   tutti cluster run{0} --all -- hostname\n       tutti cluster run{0} -- mpirun -np {1} hostname\n",
             name_option(arguments), slots);
  return 0;
}

/// The words to run. Those after -- as they were given: CLI11 would take a word such as [a,b] for two.
std::vector<std::string> command_words(const ClusterArguments& arguments) {
  const std::vector<std::string> words = own_words();
  const auto mark = std::find(words.begin(), words.end(), "--");
  return mark == words.end() ? arguments.command : std::vector<std::string>(mark + 1, words.end());
}

int run_command(const ClusterArguments& arguments) {
  const Box cluster = load(arguments.name);
  const std::vector<std::string> command = command_words(arguments);
  if (command.empty()) throw UsageError("what to run? `tutti cluster run{} -- COMMAND…`", name_option(arguments));
  if (arguments.all && !arguments.node.empty()) throw UsageError("give --node or --all, not both");
  set_node_environment(cluster, arguments.map_by);
  if (arguments.all) {
    for (const BoxNode& node : cluster.nodes) check_usable(cluster, node);
    return run_in_all(cluster.nodes, command);
  }
  const BoxNode& node = arguments.node.empty() ? cluster.nodes.front() : cluster.node(arguments.node);
  check_usable(cluster, node);
  // In our place: its stdin, terminal, signals and exit code are then its own.
  become(inside(node, command));
}

int shape_command(const ClusterArguments& arguments) {
  if (arguments.rate.empty() && arguments.network.empty())
    throw UsageError("shape to what? --rate 100mbit, or --network 1gbe");
  const Network network = chosen_network(arguments);
  const StateLock lock;
  Box cluster = load(arguments.name);
  const std::vector<BoxNode> nodes = chosen_nodes(cluster, arguments, "shape", true);
  for (const BoxNode& chosen : nodes) {
    shape(cluster, chosen, network.carried);
    for (BoxNode& node : cluster.nodes) {
      if (node.name == chosen.name) node.rate = network.carried;
    }
    fmt::print("{}: {} both ways\n", chosen.name, format_rate(network.carried));
  }
  if (nodes.size() == cluster.nodes.size()) cluster.network = network;
  save(cluster);
  print_network(network);
  return 0;
}

int cut_command(const ClusterArguments& arguments, bool is_cut) {
  const StateLock lock;
  const Box cluster = load(arguments.name);
  for (const BoxNode& node : chosen_nodes(cluster, arguments, is_cut ? "cut" : "heal", !is_cut)) {
    is_cut ? cut(cluster, node) : heal(cluster, node);
    fmt::print("{}: link {}\n", node.name, is_cut ? "cut" : "up");
  }
  return 0;
}

int pause_command(const ClusterArguments& arguments, bool is_pause) {
  const StateLock lock;
  const Box cluster = load(arguments.name);
  for (const BoxNode& node : chosen_nodes(cluster, arguments, is_pause ? "pause" : "resume", !is_pause)) {
    const int processes = is_pause ? stop_processes(node.net_namespace) : continue_processes(node.net_namespace);
    // The holder is among them: its being stopped is what says that the node is paused.
    fmt::print("{}: {} {}\n", node.name, is_pause ? "paused, processes:" : "goes on, processes:", processes - 1);
  }
  return 0;
}

int kill_command(const ClusterArguments& arguments) {
  const StateLock lock;
  const Box cluster = load(arguments.name);
  for (const BoxNode& node : chosen_nodes(cluster, arguments, "kill", false))
    fmt::print("{}: killed, processes: {}\n", node.name, kill_processes({node.net_namespace}, {node.holder}));
  return 0;
}

int status_command(const ClusterArguments& arguments) {
  const Box cluster = load(arguments.name);
  std::vector<NodeStatus> statuses = node_statuses(cluster);
  const CpuTimes begin = read_cpu_times();
  if (arguments.measure) {
    measure(cluster, statuses, kMeasureSeconds);
  } else {
    std::this_thread::sleep_for(kLoadWindow);
  }
  const MachineLoad load = load_between(begin, read_cpu_times());
  if (arguments.as_json)
    print_json(status_json(cluster, statuses, load));
  else
    fmt::print("{}", status_text(cluster, statuses, load));
  return 0;
}

int down_command(const ClusterArguments& arguments) {
  const Remains remains = down(arguments.name);
  fmt::print("cluster '{}': {}\n", arguments.name, remains.is_empty() ? "nothing there" : "removed");
  return 0;
}

// ---- options ----

using Arguments = std::shared_ptr<ClusterArguments>;

CLI::App* add_action(CLI::App& command, const Arguments& arguments, const char* name, const char* what) {
  CLI::App* action = command.add_subcommand(name, what);
  action->add_option("--name", arguments->name, "of the cluster; several can be up at once")->capture_default_str();
  return action;
}

void add_speed(CLI::App* action, const Arguments& arguments) {
  action->add_option(
      "--network", arguments->network,
      fmt::format("by name: {}; scaled down where this machine is too slow, and then it says so (unset: 1gbe)",
                  fmt::join(network_names(), ", ")));
  action->add_option("--rate", arguments->rate, "of each link, both ways: 100mbit, 2.5gbit, …, or unlimited");
}

void add_nodes(CLI::App* action, const Arguments& arguments, const char* without) {
  action->add_option("nodes,--node", arguments->chosen, fmt::format("names such as n1, or n1,n2; {}", without))
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  action->add_flag("--all", arguments->all, "all nodes");
}

void add_up(CLI::App& command, const Arguments& arguments) {
  CLI::App* action = add_action(command, arguments, "up", "make the nodes and their network");
  action->add_option("--nodes", arguments->nodes, "how many")->capture_default_str();
  action->add_option("--ranks-per-node", arguments->ranks_per_node, "slots of each node in mpirun's hostfile")
      ->capture_default_str();
  action->add_option("--slots", arguments->slots, "the same for unequal nodes: 3,2 are two nodes")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_speed(action, arguments);
  action->add_flag("--replace", arguments->replace, "take down a cluster of this name first");
}

void add_run(CLI::App& command, const Arguments& arguments) {
  CLI::App* action = add_action(command, arguments, "run", "run a command in the first node, another, or all of them");
  action->add_option("--node", arguments->node, "where (unset: the first)");
  action->add_flag("--all", arguments->all, "in all nodes at once; each line of output begins with the node's name");
  action->add_option(
      "--map-by", arguments->map_by,
      "how mpirun deals out ranks: slot fills a node's slots first, node goes round the nodes (unset: slot)");
  action->add_option("command", arguments->command, "what to run; its own options need -- before it")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  action->footer(
      "Examples:\n"
      "  tutti cluster run -- mpirun -np 4 hostname       from the first node across all; no ssh, no options needed\n"
      "  tutti cluster run --node n2 -- bash              a shell in a node\n"
      "  tutti cluster run --all -- ip -br addr");
}

}  // namespace

std::function<int()> add_cluster_command(CLI::App& program) {
  auto arguments = std::make_shared<ClusterArguments>();
  CLI::App* command =
      program.add_subcommand("cluster", "a cluster in this machine: nodes, links of a given rate, faults");
  command->require_subcommand(0, 1);
  add_up(*command, arguments);
  add_run(*command, arguments);
  CLI::App* shape = add_action(*command, arguments, "shape", "change the rate of links, also while programs use them");
  add_nodes(shape, arguments, "unset: all");
  add_speed(shape, arguments);
  add_nodes(add_action(*command, arguments, "cut", "unplug nodes"), arguments, "needed, or --all");
  add_nodes(add_action(*command, arguments, "heal", "plug nodes in again"), arguments, "unset: all");
  add_nodes(add_action(*command, arguments, "pause", "stop all processes of nodes (SIGSTOP)"), arguments,
            "needed, or --all");
  add_nodes(add_action(*command, arguments, "resume", "let them go on (SIGCONT)"), arguments, "unset: all");
  add_nodes(add_action(*command, arguments, "kill", "kill all processes of nodes (SIGKILL)"), arguments,
            "needed, or --all");
  CLI::App* status = add_action(*command, arguments, "status", "nodes, their links and processes");
  status->add_flag("--measure", arguments->measure, "send with iperf3 for 2 s from each node to the next, too");
  add_json_flag(*status, arguments->as_json);
  add_action(*command, arguments, "down", "remove the cluster and whatever is left of one");
  command->footer(
      "Each node is a network namespace with its own host name, address, /etc/hosts and /dev/shm; a link shaped to a\n"
      "rate joins it to a switch. Files, users and processors are this machine's. Needs root and iproute2.\n\n"
      "Examples:\n"
      "  tutti cluster up --nodes 4 --ranks-per-node 2 --network 1gbe\n"
      "  tutti cluster run -- mpirun -np 8 hostname\n"
      "  tutti cluster shape --rate 100mbit n3           one slow link\n"
      "  tutti cluster cut n2; tutti cluster heal n2     a cable pulled and put back\n"
      "  tutti cluster status --measure\n"
      "  tutti cluster down\n"
      "`tutti cluster up --help` and so on have the options; docs/reference/cluster.md explains.");
  return [arguments, command]() -> int {
    const std::vector<CLI::App*> chosen = command->get_subcommands();
    if (chosen.empty()) {
      fmt::print("{}", command->help());
      return 0;
    }
    const std::string action = chosen.front()->get_name();
    check_cluster_name(arguments->name);
    require_root();
    require_tools();
    if (action == "up") return up_command(*arguments, *chosen.front());
    if (action == "run") return run_command(*arguments);
    if (action == "shape") return shape_command(*arguments);
    if (action == "cut" || action == "heal") return cut_command(*arguments, action == "cut");
    if (action == "pause" || action == "resume") return pause_command(*arguments, action == "pause");
    if (action == "kill") return kill_command(*arguments);
    if (action == "status") return status_command(*arguments);
    return down_command(*arguments);
  };
}

}  // namespace tutti
