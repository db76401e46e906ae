#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "tutti/communicator.h"

namespace tutti {

/// Ranks that take turns of the same kind (steps, batches of a test) meet about twice a second to agree on something. A
/// collective must come after the same turn on all of them, so they count turns: rank 0, by its clock, says after how
/// many the next meeting is. Borrows the communicator.
class RankMeeting {
 public:
  explicit RankMeeting(Communicator& comm) : comm_(comm) {}

  /// A turn is over. Whether it is one after which ranks meet: then all call sum().
  bool is_due();
  /// Every rank's numbers, added up. A collective.
  std::vector<int64_t> sum(std::vector<int64_t> numbers);

 private:
  Communicator& comm_;
  Clock::time_point last_ = Clock::now();
  int64_t turns_ = 0;  // since the last meeting
  int64_t next_ = 1;   // turns from one meeting to the next
};

}  // namespace tutti
