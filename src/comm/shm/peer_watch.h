#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "comm/shm/segment.h"
#include "comm/wait_limits.h"

namespace tutti::shm {

/// Ranks as bits: bit r is rank r.
using RankBits = uint64_t;

/// Watches the ranks that this one waits for, while nothing moves. A rank that gives no sign of life (see Monitor) for
/// too long has stopped; one that does may take longer. Either ends in a failure of the group that names it, on all
/// ranks. One thread, that which makes progress, except awaited().
class PeerWatch {
 public:
  /// `segment` must outlive this.
  PeerWatch(Segment& segment, const WaitLimits& limits);

  /// Something has moved.
  void renew() {
    if (is_stalled_) end_stall();
  }
  /// Nothing has moved since the last call: this rank waits for `awaited` in `call`. To be called several times a
  /// second. True if it has failed the group.
  bool look(RankBits awaited, const std::function<std::string()>& call);

  /// What is waited for. Any thread.
  Awaited awaited();

 private:
  void end_stall();
  void begin_stall(RankBits awaited, const std::function<std::string()>& call);
  /// Of the awaited ranks, or those that these wait for in turn, the ones that wait for nobody.
  RankBits late_ones(RankBits awaited);
  void give_up_silent(int rank, std::chrono::nanoseconds silent);
  void give_up_late(RankBits awaited, std::chrono::nanoseconds late);
  std::string describe(RankBits ranks);

  Segment& segment_;
  const WaitLimits limits_;
  AwakeClock clock_;
  bool is_stalled_ = false;
  RankBits awaited_ = 0;
  std::chrono::nanoseconds since_{0};
  std::vector<uint64_t> signs_;                         // that each rank had given
  std::vector<std::chrono::nanoseconds> silent_since_;  // when that was

  std::mutex mutex_;
  Awaited note_;             // guarded by mutex_
  Clock::time_point noted_;  // guarded by mutex_
};

}  // namespace tutti::shm
