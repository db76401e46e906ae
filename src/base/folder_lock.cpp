#include "base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// What the processes of a holder that was killed take to end.
constexpr double kReleaseSeconds = 5;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

struct Holder {
  int pid = 0;
  std::string host;
};

Holder read_holder(const std::filesystem::path& file) {
  Holder holder;
  std::istringstream(read_file(file)) >> holder.pid >> holder.host;
  return holder;
}

/// Elsewhere nobody can tell: it counts as alive.
bool is_alive(const Holder& holder) {
  if (holder.pid <= 0) return false;
  if (!holder.host.empty() && holder.host != host_name()) return true;
  return ::kill(holder.pid, 0) == 0 || errno == EPERM;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw Error("cannot open {}: {}", file.string(), std::strerror(errno));
  for (const auto start = Clock::now(); ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;) {
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason != EWOULDBLOCK) {
      problem_ = std::strerror(reason);
      return;
    }
    const Holder holder = read_holder(file);
    if (!is_alive(holder) && seconds_since(start) < kReleaseSeconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    holder_ = holder.pid > 0 ? fmt::format("process {} on {}", holder.pid, holder.host) : "another process";
    return;
  }
  fd_ = std::move(fd);
  const std::string me = fmt::format("{} {}\n", ::getpid(), host_name());
  // On a full disk it stays empty, which only means that others wait a little before they complain.
  if (::ftruncate(fd_.get(), 0) != 0 || ::pwrite(fd_.get(), me.data(), me.size(), 0) < 0) return;
}

bool is_folder_locked(const std::filesystem::path& folder) {
  const Fd fd(::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC));
  // Shared: several may ask at once. It is released when the file is closed.
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace tutti
