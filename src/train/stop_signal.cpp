#include "train/stop_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <initializer_list>

#include "base/exit_note.h"

namespace tutti {
namespace {

std::atomic<int> noted_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // a handler writes it

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

// Code that oneDNN makes at run time uses the stack pointer for other things: a handler that runs then writes its frame
// into the heap. So the signals stay pending, and nothing runs when they come. Only threads that were there before the
// call (OpenBLAS has some) can still take one, and those run no such code.
void note_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { noted_signal = number; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int stop_signal() {
  if (noted_signal != 0) return noted_signal;
  sigset_t pending;
  if (::sigpending(&pending) != 0) return 0;
  for (const int number : {SIGTERM, SIGUSR1}) {
    // Noted, because a thread that takes it makes it vanish from the pending ones before its handler has run.
    if (sigismember(&pending, number) == 1) return noted_signal = number;
  }
  return 0;
}

EndsAtStopSignal::EndsAtStopSignal(bool speaks) : thread_([this, speaks] { watch(speaks); }) {}

EndsAtStopSignal::~EndsAtStopSignal() {
  is_over_ = true;
  thread_.join();
}

void EndsAtStopSignal::watch(bool speaks) const {
  while (!is_over_) {
    if (stop_signal() != 0) {
      if (speaks) std::fputs("tutti: stopped by a signal before the first step: there was nothing to save\n", stderr);
      write_exit_note(kExitSaved);
      ::_exit(kExitSaved);  // other threads are at work, whose memory must not go away under them
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace tutti
