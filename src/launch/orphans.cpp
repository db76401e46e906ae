#include "launch/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/proc_files.h"

namespace tutti {
namespace {

/// SIGKILL to all our children, each with the process group it leads.
void kill_children() {
  for (const pid_t pid : all_pids()) {
    const auto stat = process_stat(pid);
    if (stat && stat->parent == ::getpid()) ::kill(stat->group == pid ? -pid : pid, SIGKILL);
  }
}

}  // namespace

Orphans::Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

Orphans::~Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

void Orphans::end_all(std::chrono::milliseconds grace) {
  const auto start = Clock::now();
  while (true) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended > 0) continue;
    if (ended < 0) return;
    if (Clock::now() - start >= grace) kill_children();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace tutti
