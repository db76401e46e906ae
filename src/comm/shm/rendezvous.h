#pragma once

#include <vector>

#include "comm/shm/segment.h"
#include "comm/shm/shm.h"

namespace tutti::shm {

/// What a rank holds once all ranks have come.
struct Meeting {
  Fd file;  // of the segment
  /// Every rank holds the only write end of its pipe and a read end of each other's. The kernel closes the write end
  /// when the rank ends, in whatever way, and all the others see that on their read end.
  Fd own_lifeline;
  std::vector<Fd> lifelines;  // by rank; none for this rank itself
};

/// Brings the ranks together: rank 0 listens under a name made of user and job, the others connect, rank 0 hands out
/// the shared memory. Throws CommFailed naming who did not come, or what does not fit.
Meeting meet(const ShmOptions& options);

}  // namespace tutti::shm
