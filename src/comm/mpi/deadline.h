#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tutti::mpi {

/// Ends this process, with a text on stderr, unless it is destroyed in time: for calls of MPI that wait for all
/// processes and cannot be interrupted. A time of 0 sets none.
class Deadline {
 public:
  Deadline(std::chrono::milliseconds timeout, int exit_code, std::string text);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void run(std::chrono::milliseconds timeout);

  const int exit_code_;
  const std::string text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_met_ = false;  // guarded by mutex_
  std::thread thread_;   // last: starts once the state it uses exists
};

}  // namespace tutti::mpi
