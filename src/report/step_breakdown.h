#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"
#include "tutti/links.h"
#include "tutti/plan.h"

namespace tutti {

/// Where one rank's time went; means per step. The parts down to other_s add up to step_s.
struct RankBreakdown {
  double step_s = 0;
  double compute_s = 0;  // forward and backward
  double data_wait_s = 0;
  double optimizer_s = 0;  // also where computation waited for an update on the communication thread
  // Exposed communication: computation waited, and meanwhile …
  double slowest_rank_s = 0;  // … the transfer under way waited for the last rank to come
  double startup_s = 0;       // … all ranks were there, in the time that any message takes
  double bandwidth_s = 0;     // … and after that; copies from and to the device count here
  double scheduling_s = 0;    // … nothing was under way: threads were being woken
  double other_s = 0;

  double comm_s = 0;    // transfers under way, without waiting for the last rank
  double caused_s = 0;  // others waited, exposed, for this rank to come: the sum over them

  double exposed_s() const { return slowest_rank_s + startup_s + bandwidth_s + scheduling_s; }
};

/// One transfer of the plan; means per step and rank.
struct TransferBreakdown {
  std::string name;
  Operation operation = Operation::all_reduce;
  int64_t bytes = 0;
  double busy_s = 0;     // from its start on the rank to its end
  double skew_s = 0;     // of that, until the last rank came
  double exposed_s = 0;  // of busy_s, computation waited
};

/// Where the time of a window of steps went.
struct StepBreakdown {
  int64_t first_step = 0;
  int64_t steps = 0;  // 0: nothing was recorded
  std::string strategy;
  double startup_s = 0;           // of one all-reduce
  std::string startup_from = "";  // "links": measured; "smallest": the time of the smallest transfer; "": unknown
  std::vector<RankBreakdown> ranks;
  std::vector<TransferBreakdown> transfers;
};

/// From all ranks' traces of steps that ran under `plan`. Links are what the run measured, if it did.
StepBreakdown break_down(const std::vector<RankTrace>& ranks, const Plan& plan, const std::optional<Links>& links);

void to_json(nlohmann::json& json, const StepBreakdown& breakdown);
void from_json(const nlohmann::json& json, StepBreakdown& breakdown);

}  // namespace tutti
