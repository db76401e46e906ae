#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "probe/checks.h"
#include "tutti/communicator.h"
#include "tutti/error.h"

namespace tutti {

struct CheckOptions {
  TorchFacts torch;
  std::string mpi;  // version of the library where the job uses it
  std::filesystem::path runs_folder = "runs";
  double link_gbps = 0;  // what links between nodes should carry; 0: compare them with each other
  double connect_s = 0;  // what it took to connect
  int gpu = -1;          // this rank's, to be joined with the others' by NCCL; -1: none is
  std::chrono::milliseconds gpu_timeout{20'000};
};

/// All that was seen and what follows from it.
struct CheckReport {
  std::vector<Node> nodes;
  std::vector<RankFacts> ranks;
  std::vector<ClockOffset> clocks;
  std::vector<PairFigures> pairs;
  std::vector<Finding> findings;
};

/// Looks at ranks, machines, clocks and links. A collective; takes about a second, and more for many nodes.
CheckReport run_check(Communicator& comm, const CheckOptions& options);

/// A table by node, then one line per finding.
std::string describe(const CheckReport& report);
nlohmann::json to_json(const CheckReport& report);

/// Rank 0 has said why nobody starts, and trying again would not help: to exit as it does.
class RefusedByAll : public Stopped {
 public:
  using Stopped::Stopped;
};

/// Throws UsageError naming nodes and versions unless all ranks run the same program: on rank 0, elsewhere
/// RefusedByAll. A collective, cheap enough for every start.
void require_same_build(Communicator& comm, const TorchFacts& torch);

}  // namespace tutti
