#include "probe/timing.h"

#include <algorithm>

#include "base/clock.h"
#include "comm/exchange.h"

namespace tutti {

std::vector<double> time_runs(Communicator& comm, const TimedRuns& runs, const std::function<double()>& exchange) {
  constexpr int kWarmUps = 2;
  const auto run = [&] {
    comm.barrier()->wait();
    return exchange();
  };
  const auto begin = Clock::now();
  for (int i = 0; i < kWarmUps; ++i) run();
  // Rank 0's count, for all.
  int64_t count = static_cast<int64_t>(runs.seconds / std::max(1e-9, seconds_since(begin) / kWarmUps));
  count = std::clamp<int64_t>(count, runs.least, runs.most);
  comm.broadcast({&count, 1, DataType::i64}, 0)->wait();
  std::vector<int64_t> mine_ns;
  for (int64_t i = 0; i < count; ++i) mine_ns.push_back(static_cast<int64_t>(run() * 1e9));
  std::vector<double> seconds(static_cast<std::size_t>(count), 0);
  for (const auto& rank_ns : gather_numbers(comm, mine_ns))
    for (std::size_t i = 0; i < seconds.size(); ++i)
      seconds[i] = std::max(seconds[i], static_cast<double>(rank_ns[i]) * 1e-9);
  return seconds;
}

}  // namespace tutti
