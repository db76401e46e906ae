#pragma once

#include <functional>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

/// How often to repeat what is timed: as often as fits into the time, within bounds.
struct TimedRuns {
  double seconds = 0.2;
  int least = 5, most = 2000;
};

/// Runs `exchange` again and again, after two runs that do not count. Each begins when all ranks are there and takes as
/// long as its slowest rank: `exchange` returns this rank's seconds, 0 where it takes no part. A collective; all ranks
/// get the same figures.
std::vector<double> time_runs(Communicator& comm, const TimedRuns& runs, const std::function<double()>& exchange);

}  // namespace tutti
