#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tutti/communicator.h"

namespace tutti {

/// What a rank is at.
enum class RunPhase : uint8_t { starting, set_up, profile, training, evaluation, checkpoint, finishing, serving };

const char* word(RunPhase phase);

/// What a rank says of itself while it runs. Times are seconds since 1970.
struct RankStatus {
  std::string run;  // the folder of its run; until that is known the name that was given, or ""
  int rank = 0;
  int ranks = 1;           // of the job
  bool is_server = false;  // a parameter server: its rank counts on from those of the workers
  std::string host;
  pid_t pid = 0;
  uint64_t process_start = 0;  // tells it from a later process of the same number
  std::string transport;
  double started = 0, updated = 0;

  std::string phase;
  double phase_since = 0;
  int64_t step = 0, steps = 0;   // done, and to do in all
  double data_per_s = 0;         // of all ranks, over the last seconds in which steps were made
  double cpu_s = 0;              // that its process has used of processors, all threads together
  int64_t checkpoint_step = -1;  // the last one saved; -1: none yet
  double checkpoint_time = 0;

  Awaited awaited;       // nothing: it computes
  std::string transfer;  // of the plan, where that is what it waits in

  std::optional<int> exit_code;  // it has ended
  std::string error;             // of that
};

void to_json(nlohmann::json& json, const RankStatus& status);
/// Throws nlohmann's exceptions for what is no status.
void from_json(const nlohmann::json& json, RankStatus& status);

/// Seconds since 1970.
double wall_seconds();
/// "12.3 s", "5 min", "2.5 h": how long something has lasted.
std::string readable_time(double seconds);

/// "training, step 120 of 500, 834.1 data/s; waits 12.3 s for rank 2 in all_reduce of 1000 f32 (transfer 3 'fc')".
std::string describe(const RankStatus& status);
/// "rank 1 of 3", "parameter server 0".
std::string name_of(const RankStatus& status);

}  // namespace tutti
