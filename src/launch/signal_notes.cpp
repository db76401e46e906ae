#include "launch/signal_notes.h"

#include <unistd.h>

#include <cerrno>

namespace tutti {
namespace {

volatile sig_atomic_t g_note_fd = -1;  // where the handler writes; a handler has no other way to know

void note_signal(int number, siginfo_t* info, void*) {
  const int saved = errno;
  const SignalNote note{number, info->si_code == SI_KERNEL, info->si_pid};
  // When the pipe is full the loop is about to wake up anyway, and finds ended children without being told.
  [[maybe_unused]] const ssize_t put = ::write(g_note_fd, &note, sizeof note);
  errno = saved;
}

}  // namespace

SignalNotes::SignalNotes() : pipe_(make_pipe()) {
  do_not_block(pipe_.write_end.get());
  g_note_fd = pipe_.write_end.get();
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  ignores_hangup_ = hangup.sa_handler == SIG_IGN;  // nohup: it is to stay ignored, here and in the ranks
  struct sigaction note = {};
  note.sa_sigaction = note_signal;
  note.sa_flags = SA_SIGINFO;  // without SA_RESTART: a write that blocks gives way to the loop
  for (const int number : kForwardedSignals) {
    if (number != SIGHUP || !ignores_hangup_) replace(number, note);
  }
  replace(SIGCHLD, note);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  replace(SIGPIPE, ignore);  // writes tell
  // Whoever started us may have blocked some.
  sigset_t open;
  sigemptyset(&open);
  for (const auto& [number, old] : replaced_) sigaddset(&open, number);
  ::pthread_sigmask(SIG_UNBLOCK, &open, &old_mask_);
}

SignalNotes::~SignalNotes() {
  for (const auto& [number, old] : replaced_) ::sigaction(number, &old, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  g_note_fd = -1;
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

void SignalNotes::replace(int number, const struct sigaction& action) {
  struct sigaction old = {};
  ::sigaction(number, &action, &old);
  replaced_.emplace_back(number, old);
}

}  // namespace tutti
