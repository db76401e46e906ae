#pragma once

#include <chrono>
#include <thread>
#include <vector>

#include "comm/shm/segment.h"

namespace tutti::shm {

/// Gives this rank's sign of life to the others, as long as its process runs, and sleeps on their lifelines. When one
/// is cut and its rank has not left in order, fails the group in that rank's name; wakes this rank in either case, so
/// that it looks again.
class Monitor {
 public:
  /// `segment` must outlive the monitor.
  Monitor(Segment& segment, std::vector<Fd> lifelines, std::chrono::milliseconds sign_interval);
  ~Monitor();

 private:
  void run();

  Segment& segment_;
  std::vector<Fd> lifelines_;
  std::chrono::milliseconds sign_interval_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace tutti::shm
