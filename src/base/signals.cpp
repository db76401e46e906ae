#include "base/signals.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace tutti {
namespace {

volatile sig_atomic_t g_note_fd = -1;  // where the handler writes; a handler has no other way to know

void note_signal(int number, siginfo_t* info, void*) {
  const int saved = errno;
  const SignalNote note{number, info->si_code == SI_KERNEL, info->si_pid};
  // When the pipe is full its reader is about to wake up anyway, and finds ended children without being told.
  [[maybe_unused]] const ssize_t put = ::write(g_note_fd, &note, sizeof note);
  errno = saved;
}

}  // namespace

SignalActions::SignalActions(const std::vector<int>& numbers, const struct sigaction& action) {
  for (const int number : numbers) {
    struct sigaction old = {};
    ::sigaction(number, nullptr, &old);
    if (number == SIGHUP && old.sa_handler == SIG_IGN) continue;  // nohup: to stay, here and in children
    ::sigaction(number, &action, nullptr);
    replaced_.emplace_back(number, old);
  }
}

SignalActions::~SignalActions() {
  for (const auto& [number, old] : replaced_) ::sigaction(number, &old, nullptr);
}

SignalNotes::SignalNotes(const std::vector<int>& numbers, int flags) : pipe_(make_polled_pipe()), outer_fd_(g_note_fd) {
  do_not_block(pipe_.write_end.get());
  g_note_fd = pipe_.write_end.get();
  struct sigaction note = {};
  note.sa_sigaction = note_signal;
  note.sa_flags = SA_SIGINFO | flags;
  actions_.emplace(numbers, note);
  // Whoever started us may have blocked some.
  sigset_t open;
  sigemptyset(&open);
  for (const int number : numbers) sigaddset(&open, number);
  ::pthread_sigmask(SIG_UNBLOCK, &open, &old_mask_);
}

SignalNotes::~SignalNotes() {
  actions_.reset();
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  g_note_fd = outer_fd_;
}

std::optional<SignalNote> SignalNotes::next() const {
  SignalNote note;
  while (true) {
    const ssize_t got = ::read(fd(), &note, sizeof note);
    if (got == sizeof note) return note;
    if (got < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

StopSignals::StopSignals() : notes_({SIGINT, SIGTERM, SIGHUP, SIGCHLD}, SA_RESTART) {}

void StopSignals::take_notes() {
  while (const auto note = notes_.next()) {
    is_woken_ = true;
    if (note->number == SIGCHLD) continue;
    if (first_ == 0) first_ = note->number;
    ++count_;
  }
}

int StopSignals::first() {
  take_notes();
  return first_;
}

int StopSignals::count() {
  take_notes();
  return count_;
}

void StopSignals::wait(int milliseconds) {
  pollfd polled{notes_.fd(), POLLIN, 0};
  if (!is_woken_) ::poll(&polled, 1, milliseconds);
  take_notes();
  is_woken_ = false;
}

}  // namespace tutti
