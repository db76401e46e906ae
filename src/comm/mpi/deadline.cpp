#include "comm/mpi/deadline.h"

#include <unistd.h>

#include <utility>

#include "base/exit_note.h"
#include "comm/wait_limits.h"

namespace tutti::mpi {

Deadline::Deadline(std::chrono::milliseconds timeout, int exit_code, std::string text)
    : exit_code_(exit_code), text_(std::move(text)) {
  if (timeout.count() > 0) thread_ = std::thread([this, timeout] { run(timeout); });
}

Deadline::~Deadline() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_met_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Deadline::run(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLook{100};
  AwakeClock clock;
  std::unique_lock<std::mutex> lock(mutex_);
  while (clock.look() < timeout)
    if (changed_.wait_for(lock, kLook, [this] { return is_met_; })) return;
  const std::string line = "tutti: " + text_ + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  write_exit_note(exit_code_);
  ::_exit(exit_code_);
}

}  // namespace tutti::mpi
