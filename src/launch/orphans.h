#pragma once

#include <chrono>

namespace tutti {

/// While it lives, processes whose parents die before they do become children of this process. For commands that start
/// others, say mpirun and its ssh, and may have to be killed.
class Orphans {
 public:
  Orphans();
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  /// Returns when this process has no child left. Those that have not ended by themselves within `grace` get SIGKILL,
  /// each with the process group it leads.
  static void end_all(std::chrono::milliseconds grace);
};

}  // namespace tutti
