#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/nodes.h"
#include "probe/links_probe.h"
#include "probe/pairs.h"
#include "tutti/communicator.h"

namespace tutti {

/// What operations cost among some ranks of the job.
struct ProbedLevel {
  std::string name;  // "node": inside one; "nodes": one rank of each; "all": every rank
  std::string transport;
  std::vector<int> ranks;
  double link_bytes_per_s = 0;  // between two of them, for the ring bound; 0: unknown
  std::vector<ProbedOp> ops;
};

/// Which ranks to measure, and over what. One node: its ranks over the transport. Several: those of the first node that
/// has more than one, over shm (where the transport takes host memory) and over the transport; the first of every node;
/// and all.
std::vector<ProbedLevel> levels_to_probe(const std::vector<Node>& nodes, const std::string& transport);

/// Measures a level: its ranks connect anew, or take `comm` where they are all; the others wait. `job` names the job on
/// this machine, and `gpu` is this rank's, for nccl. A collective; the figures are equal on all ranks.
/// `options.progress` is called on the level's first. Messages from rank to rank are not measured among all.
void probe_level(Communicator& comm, const std::string& job, int gpu, ProbedLevel& level, ProbeOptions options);

/// Fills in what two ranks of each level can exchange: `link_gbps` where it is not 0, else what `send` reached with the
/// largest message. A ring over all ranks is as fast as its link between nodes.
void set_link_bandwidths(std::vector<ProbedLevel>& levels, double link_gbps);

/// What an operation over a ring of such links takes at least: factor · n / B; 0 when B is unknown.
double ring_bound_s(const ProbedLevel& level, ProbeOp op, int64_t bytes);

void to_json(nlohmann::json& json, const ProbedOp& op);
void from_json(const nlohmann::json& json, ProbedOp& op);
void to_json(nlohmann::json& json, const ProbedLevel& level);

}  // namespace tutti
