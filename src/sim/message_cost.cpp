#include "sim/message_cost.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

double bytes_of(const Transfer& transfer) { return static_cast<double>(transfer.elements()) * sizeof(float); }

double over_connections(const Link& link, double connections) {
  if (link.connection_bytes_per_s <= 0) return link.bytes_per_s;
  return std::min(link.bytes_per_s, connections * link.connection_bytes_per_s);
}

/// Of an all-reduce; reduce-scatter and all-gather are half of it each.
struct CollectiveCost {
  std::vector<Stage> stages;
  double seconds = 0;
};

CollectiveCost cost_of(std::vector<Stage> stages) {
  CollectiveCost cost{std::move(stages), 0};
  for (const Stage& stage : cost.stages) cost.seconds += stage.alone_s();
  return cost;
}

/// Each part passes every link of the ring twice, 2 (P - 1) / P of the message in all; the narrowest link sets the
/// pace. Parts follow each other, so that the links' start-ups show only where the parts are shorter than those.
CollectiveCost ring(double bytes, const Cluster& cluster, const Layout& layout) {
  const double ranks = layout.ranks, nodes = layout.nodes;
  const double share = 2 * (ranks - 1) / ranks;
  double inside_s = share * bytes / cluster.inside.bytes_per_s, between_s = 0;
  double startup_s = share * cluster.inside.startup_s * ranks;
  if (layout.nodes > 1) {
    between_s = share * bytes / collective_bytes_per_s(cluster.network, layout.nodes);
    if (layout.per_node == 1) inside_s = 0;
    startup_s = share * (cluster.network.startup_s * nodes + cluster.inside.startup_s * (ranks - nodes));
  }
  Stage stage{kRing, std::max({startup_s, inside_s, between_s}), 0, true};
  stage.beside_s = std::max({startup_s, inside_s * (1 + cluster.software.transfer_slowdown), between_s});
  stage.launch_s = cluster.software.launch_s;
  return cost_of({stage});
}

/// Summed inside each node, the node's shares around a ring of nodes, and handed out inside.
CollectiveCost hierarchical(double bytes, const Cluster& cluster, const Layout& layout) {
  const double devices = layout.per_node, nodes = layout.nodes;
  const double moved_s = (devices - 1) / devices * bytes / cluster.inside.bytes_per_s;
  const double startup_s = (devices - 1) * cluster.inside.startup_s;
  Stage inside{kInside, startup_s + moved_s, 0, true};
  inside.beside_s = startup_s + moved_s * (1 + cluster.software.transfer_slowdown);
  inside.launch_s = cluster.software.launch_s;
  const double between_s =
      2 * (nodes - 1) / nodes *
      (nodes * cluster.network.startup_s + bytes / collective_bytes_per_s(cluster.network, layout.nodes));
  return cost_of({inside, {kNodeOut, between_s, 0, true}, inside});
}

/// Two trees, each for half of the message, up and down: every node passes the whole message on twice.
CollectiveCost tree(double bytes, const Cluster& cluster, const Layout& layout) {
  const double nodes = layout.nodes, depth = std::ceil(std::log2(nodes));
  const double startup_s = 2 * depth * cluster.network.startup_s + 2 * layout.per_node * cluster.inside.startup_s;
  const double bytes_per_s = std::min(collective_bytes_per_s(cluster.network, layout.nodes),
                                      layout.per_node > 1 ? cluster.inside.bytes_per_s : cluster.network.bytes_per_s);
  return cost_of({{kRing, startup_s + 2 * bytes / bytes_per_s, 0, true, 0, cluster.software.launch_s}});
}

std::vector<Stage> collective_stages(double bytes, const Cluster& cluster, const Layout& layout) {
  switch (layout.nodes > 1 ? cluster.collective : Collective::ring) {
    case Collective::ring:
      return ring(bytes, cluster, layout).stages;
    case Collective::hierarchical:
      return hierarchical(bytes, cluster, layout).stages;
    case Collective::tree:
      return tree(bytes, cluster, layout).stages;
    case Collective::automatic:
      break;
  }
  CollectiveCost best = ring(bytes, cluster, layout);
  for (CollectiveCost other : {hierarchical(bytes, cluster, layout), tree(bytes, cluster, layout)})
    if (other.seconds < best.seconds) best = std::move(other);
  return best.stages;
}

/// A host that cannot send and receive at once at full speed is one resource for both; a lone message is no faster.
Stage card_stage(int out, int in, bool is_out, double bytes, double bytes_per_s, const Link& link) {
  if (link.duplex >= 2) return {is_out ? out : in, bytes / bytes_per_s, link.startup_s, false};
  const double seconds = bytes / (bytes_per_s * link.duplex);
  return {out, seconds, link.startup_s + bytes / bytes_per_s - seconds, false};
}

std::vector<Stage> push_pull_stages(const Transfer& transfer, const Plan& plan, const Cluster& cluster,
                                    const Layout& layout) {
  const double bytes = bytes_of(transfer), nodes = layout.nodes;
  const Software& software = cluster.software;
  std::vector<Stage> stages;
  // Summed inside the node and, where there are others, copied to the host; the way back is the same.
  const double startup_s = cluster.inside.startup_s, devices = layout.per_node;
  const double moved_s = (layout.nodes > 1 ? 1 : (devices - 1) / devices) * bytes / cluster.inside.bytes_per_s;
  Stage inside{kInside, startup_s + moved_s, 0, true};
  inside.beside_s = startup_s + moved_s * (1 + software.transfer_slowdown);
  inside.launch_s = software.stage_launch_s;
  stages.push_back(inside);
  if (layout.nodes > 1) {
    const double servers = std::max(1, plan.servers);
    const double worker_bytes_per_s = over_connections(cluster.network, servers);
    const double server_bytes_per_s = over_connections(cluster.network, nodes);
    // A node that also serves carries its own messages and those of others; one part in N stays at home.
    const double carried = software.colocated_servers ? 2 * bytes * (nodes - 1) / nodes : bytes;
    const int server = kFirstServer + kPerServer * std::max(0, transfer.server);
    const double served = software.colocated_servers ? 0 : nodes * bytes;
    stages.push_back(card_stage(kNodeOut, kNodeIn, true, carried, worker_bytes_per_s, cluster.network));
    stages.push_back(card_stage(server, server + 2, true, served, server_bytes_per_s, cluster.network));
    if (software.server_sum_bytes_per_s > 0)
      stages.push_back({server + 1, nodes * bytes / software.server_sum_bytes_per_s, 0, false});
    if (software.asks_for_sums) stages.push_back({kNodeOut, 0, cluster.network.startup_s, false});
    stages.push_back(card_stage(server, server + 2, false, served, server_bytes_per_s, cluster.network));
    stages.push_back(card_stage(kNodeOut, kNodeIn, false, carried, worker_bytes_per_s, cluster.network));
  }
  // Devices of a node sum in a ring, which uses their links in both directions: up and down take turns.
  if (layout.per_node == 1) inside.resource = kInsideBack;
  stages.push_back(inside);
  return stages;
}

/// Messages as long as the run's own probe found them, alone; several under way share what carries the bytes.
std::vector<Stage> measured_stages(const Transfer& transfer, const Links& links, const Software& software) {
  const auto bytes = static_cast<int64_t>(bytes_of(transfer));
  Stage stage{kRing, 0, 0, true};
  switch (transfer.operation) {
    case Operation::all_reduce:
      stage.seconds = links.all_reduce.interpolated(bytes);
      break;
    case Operation::reduce_scatter:
      stage.seconds = links.reduce_scatter.is_measured() ? links.reduce_scatter.interpolated(bytes)
                                                         : links.all_reduce.interpolated(bytes) / 2;
      break;
    case Operation::all_gather:
      stage.seconds = links.all_gather.is_measured() ? links.all_gather.interpolated(bytes)
                                                     : links.all_reduce.interpolated(bytes) / 2;
      break;
    case Operation::push_pull:
      // As the longest message that was timed: what short ones save, several under way at once do not.
      stage.seconds = links.push_pull.is_measured() ? links.push_pull.samples.back().seconds /
                                                          static_cast<double>(links.push_pull.samples.back().bytes)
                                                    : links.push_pull.per_byte_s;
      stage.seconds *= static_cast<double>(bytes);
      stage.delay_s = std::max(0.0, links.push_pull.interpolated(bytes) - stage.seconds);
      break;
  }
  // The thread that starts it takes its time from the cores that compute, so this counts as part of the message.
  stage.beside_s = stage.seconds * (1 + software.transfer_slowdown) + software.launch_s;
  stage.seconds += software.launch_s;
  return {stage, {kInsideBack, 0, 0, false}};  // where it is after its delay
}

}  // namespace

double collective_bytes_per_s(const Link& network, int nodes) {
  return over_connections(network, network.connections) / (1 + network.jitter * std::log2(nodes));
}

std::vector<Stage> stages_of(const Transfer& transfer, const Plan& plan, const Cluster& cluster, const Layout& layout) {
  const Software& software = cluster.software;
  if (cluster.measured) return measured_stages(transfer, *cluster.measured, software);
  std::vector<Stage> stages;
  if (transfer.operation == Operation::push_pull) {
    stages = push_pull_stages(transfer, plan, cluster, layout);
  } else {
    stages = collective_stages(bytes_of(transfer), cluster, layout);
    if (transfer.operation != Operation::all_reduce) {
      for (Stage& stage : stages) {
        stage.seconds /= 2;
        stage.beside_s /= 2;
        stage.launch_s /= 2;
      }
    }
    const double negotiation_s = software.negotiation_s + software.negotiation_per_doubling_s * std::log2(layout.ranks);
    if (negotiation_s > 0) stages.insert(stages.begin(), {kCoordinator, negotiation_s, 0, false});
  }
  return stages;
}

double seconds_alone(const Transfer& transfer, const Plan& plan, const Cluster& cluster, const Layout& layout) {
  double seconds = 0;
  for (const Stage& stage : stages_of(transfer, plan, cluster, layout)) seconds += stage.alone_s();
  return seconds;
}

Links links_of(const Cluster& cluster, const Layout& layout, int servers) {
  if (cluster.measured) return *cluster.measured;
  Plan plan;
  plan.ranks = layout.ranks;
  plan.servers = servers;
  const auto cost = [&](Operation operation) {
    std::vector<LinkSample> samples;
    for (int64_t bytes = 4 << 10; bytes <= 64 << 20; bytes *= 4) {
      Transfer transfer;
      transfer.operation = operation;
      transfer.end = bytes / static_cast<int64_t>(sizeof(float));
      transfer.server = 0;
      samples.push_back({bytes, seconds_alone(transfer, plan, cluster, layout)});
    }
    return fit_link_cost(std::move(samples));
  };
  Links links;
  links.all_reduce = cost(Operation::all_reduce);
  if (servers > 0) {
    links.push_pull = cost(Operation::push_pull);
    // Several are under way at once, so what counts per byte is the busiest part of the way.
    Transfer transfer;
    transfer.operation = Operation::push_pull;
    transfer.end = 1 << 20;
    transfer.server = 0;
    std::vector<double> busy(static_cast<std::size_t>(kFirstServer + kPerServer), 0);
    for (const Stage& stage : stages_of(transfer, plan, cluster, layout))
      busy[static_cast<std::size_t>(stage.resource)] +=
          (stage.launch_s + stage.seconds) / (stage.resource >= kFirstServer ? servers : 1);
    links.push_pull.per_byte_s = *std::max_element(busy.begin(), busy.end()) / (4 << 20);
  }
  return links;
}

}  // namespace tutti
