#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tutti/profile.h"

namespace tutti {

struct PlannedStrategy;

/// What `tutti plan --cluster` was asked.
struct ClusterPlanArguments {
  std::string model;
  std::string cluster;
  std::vector<int> sizes;  // ranks; empty: powers of two up to all
  double batch = 64;       // per rank
  int64_t tokens = 0;      // of a text; 0: as `tutti models` has it
  int accumulate = 1;
  std::string optimizer = "adamw";
  int nodes = 0;  // of the cluster's last group; 0: as its file says
  int servers = 0;
  double efficiency_bound = 0.8;
  bool brief = false;  // the tables alone
  bool as_json = false;
  std::string trace;    // file for the timeline of the best strategy at the largest size
  std::string records;  // file for records
  Profile measured;     // of a run, instead of a computed one
};

/// Prints tables of predictions, the best strategy with its sizes, and why.
int plan_cluster(const ClusterPlanArguments& arguments);

/// A strategy with its sizes and what was predicted of it, without its plan.
nlohmann::json to_json(const PlannedStrategy& planned);

}  // namespace tutti
