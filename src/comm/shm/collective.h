#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "comm/pending.h"
#include "comm/shm/arena.h"
#include "comm/shm/rounds.h"
#include "comm/shm/schedules.h"

namespace tutti::shm {

/// One collective under way on this rank.
struct Collective : Pending {
  Call call;                  // without the offset
  Slices slices;              // for broadcast, only the root's is not empty
  void* allocated = nullptr;  // the result of allocate

  std::unique_ptr<Schedule> schedule;
  std::size_t round = 0;      // of the schedule
  bool is_announced = false;  // all ranks are known to call the same
  bool has_arrived = false;   // in the current round
  bool is_small = false;      // its data went out with the announcement
};

/// Runs collectives in the order posted. In its first round each rank announces what it calls; small data travels
/// along. One thread.
class CollectiveQueue {
 public:
  /// `segment` must outlive the queue.
  explicit CollectiveQueue(Segment& segment)
      : segment_(segment), rounds_(segment), arena_(segment), has_cpu_per_rank_(segment.has_cpu_per_rank()) {}

  void post(std::shared_ptr<Collective> collective) { queue_.push_back(std::move(collective)); }
  /// Goes as far as possible without waiting; true if that was any way. Begins no round unless `may_begin`.
  bool advance(bool may_begin);
  /// Fails the group, and returns true, if this rank waits for one that has left.
  bool notice_departures();
  /// The ranks that have not come to the round which this one waits in, as bits.
  uint64_t awaited();
  /// What they are awaited in; only where there are any.
  std::string call() const { return queue_.front()->call.describe(); }
  /// True if there was anything to fail.
  bool fail_all(const std::string& text);

 private:
  void begin_round(Collective& collective);
  void end_round(Collective& collective);
  void check_calls();
  std::unique_ptr<Schedule> staged_schedule(Collective& collective);
  std::unique_ptr<Schedule> large_schedule(Collective& collective);

  Segment& segment_;
  Rounds rounds_;
  Arena arena_;
  bool has_cpu_per_rank_;  // the same on all ranks
  std::deque<std::shared_ptr<Collective>> queue_;
};

}  // namespace tutti::shm
