#pragma once

#include <thread>
#include <vector>

#include "comm/shm/segment.h"

namespace tutti::shm {

/// Sleeps on the other ranks' lifelines. When one is cut and its rank has not left in order, fails the group in that
/// rank's name; wakes this rank in either case, so that it looks again.
class Monitor {
 public:
  /// `segment` must outlive the monitor.
  Monitor(Segment& segment, std::vector<Fd> lifelines);
  ~Monitor();

 private:
  void run();

  Segment& segment_;
  std::vector<Fd> lifelines_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace tutti::shm
