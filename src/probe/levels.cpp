#include "probe/levels.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/exchange.h"
#include "comm/transport.h"

namespace tutti {
namespace {

constexpr std::chrono::minutes kTimeout{10};

std::unique_ptr<Communicator> connect_level(Communicator& comm, const ProbedLevel& level, const std::string& job,
                                            int gpu, int index) {
  RankGroup group{job, "probe-" + level.name + "-" + level.transport, index, level.ranks};
  group.limits = wait_limits(kTimeout);
  group.gpu = gpu;
  group.share = [&](const std::string& text) { return broadcast_text(comm, text, level.ranks[0]); };
  return find_transport(level.transport).join(group);
}

ProbeOp op_named(const std::string& name) {
  for (const ProbeOp op : probe_ops())
    if (name == name_of(op)) return op;
  throw Error("unknown operation '{}'", name);
}

/// With the largest message: smaller ones may pass in a burst that no link keeps up.
double measured_link(const ProbedLevel& level) {
  for (const ProbedOp& op : level.ops)
    if (op.op == ProbeOp::send && !op.points.empty()) return op.points.back().bytes_per_s();
  return 0;
}

}  // namespace

std::vector<ProbedLevel> levels_to_probe(const std::vector<Node>& nodes, const std::string& transport) {
  std::vector<int> all, firsts;
  const Node* crowded = nullptr;
  for (const Node& node : nodes) {
    all.insert(all.end(), node.ranks.begin(), node.ranks.end());
    firsts.push_back(node.ranks[0]);
    if (crowded == nullptr && node.ranks.size() > 1) crowded = &node;
  }
  std::sort(all.begin(), all.end());
  if (nodes.size() == 1) return {{"node", transport, all, 0, {}}};
  std::vector<ProbedLevel> levels;
  if (crowded != nullptr) {
    for (const Transport& inside : transports())
      if (inside.one_machine && !find_transport(transport).gpu_per_rank)
        levels.push_back({"node", inside.name, crowded->ranks, 0, {}});
    levels.push_back({"node", transport, crowded->ranks, 0, {}});
  }
  levels.push_back({"nodes", transport, firsts, 0, {}});
  if (crowded != nullptr) levels.push_back({"all", transport, all, 0, {}});
  return levels;
}

void probe_level(Communicator& comm, const std::string& job, int gpu, ProbedLevel& level, ProbeOptions options) {
  // Between two of all ranks: that is one of the other levels.
  if (level.name == "all")
    options.ops.erase(std::remove(options.ops.begin(), options.ops.end(), ProbeOp::send), options.ops.end());
  const auto at = std::find(level.ranks.begin(), level.ranks.end(), comm.rank());
  std::string figures;
  if (at != level.ranks.end()) {
    const bool is_comm = level.transport == comm.name() && static_cast<int>(level.ranks.size()) == comm.size();
    const auto index = static_cast<int>(std::distance(level.ranks.begin(), at));
    const auto own = is_comm ? nullptr : connect_level(comm, level, job, gpu, index);
    figures = nlohmann::json(probe_links(own ? *own : comm, options)).dump();
    if (own) own->barrier()->wait();  // nobody leaves while others still need them
  } else if (find_transport(level.transport).gpu_per_rank) {
    broadcast_text(comm, "", level.ranks[0]);  // how the others find each other
  }
  comm.barrier()->wait();
  level.ops.clear();
  for (const auto& op : nlohmann::json::parse(broadcast_text(comm, figures, level.ranks[0]))) level.ops.push_back(op);
}

void set_link_bandwidths(std::vector<ProbedLevel>& levels, double link_gbps) {
  double between_nodes = 0;
  for (ProbedLevel& level : levels) {
    level.link_bytes_per_s = link_gbps > 0 ? link_gbps * 1e9 / 8 : measured_link(level);
    if (level.name == "nodes") between_nodes = level.link_bytes_per_s;
  }
  for (ProbedLevel& level : levels)
    if (level.name == "all" && between_nodes > 0) level.link_bytes_per_s = between_nodes;
}

double ring_bound_s(const ProbedLevel& level, ProbeOp op, int64_t bytes) {
  if (level.link_bytes_per_s <= 0) return 0;
  return bus_factor(op, static_cast<int>(level.ranks.size())) * static_cast<double>(bytes) / level.link_bytes_per_s;
}

void to_json(nlohmann::json& json, const ProbedOp& op) {
  json = op.cost;
  json["operation"] = name_of(op.op);
  for (const ProbePoint& point : op.points)
    json["points"].push_back({{"bytes", point.bytes},
                              {"median_s", point.median_s},
                              {"lower_quartile_s", point.lower_s},
                              {"upper_quartile_s", point.upper_s},
                              {"count", point.count}});
}

void from_json(const nlohmann::json& json, ProbedOp& op) {
  op = {op_named(json.at("operation")), {}, json.get<LinkCost>()};
  for (const auto& point : json.at("points"))
    op.points.push_back({point.at("bytes"), point.at("median_s"), point.at("lower_quartile_s"),
                         point.at("upper_quartile_s"), point.at("count")});
}

void to_json(nlohmann::json& json, const ProbedLevel& level) {
  json = {{"level", level.name},
          {"transport", level.transport},
          {"ranks", level.ranks},
          {"link_bytes_per_s", level.link_bytes_per_s},
          {"operations", level.ops}};
}

}  // namespace tutti
