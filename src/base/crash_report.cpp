#include "base/crash_report.h"

#include <execinfo.h>
#include <fmt/format.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace tutti {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

struct Place {
  void* instruction = nullptr;
  void* caller = nullptr;  // only right before the function has begun
};

/// Registers are numbers.
template <typename Register>
void* address_in(Register value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

Place place_of(const ucontext_t& context) {
  Place place;
#if defined(__x86_64__)
  place.instruction = address_in(context.uc_mcontext.gregs[REG_RIP]);
  if (place.instruction == nullptr) place.caller = *static_cast<void**>(address_in(context.uc_mcontext.gregs[REG_RSP]));
#elif defined(__aarch64__)
  place.instruction = address_in(context.uc_mcontext.pc);
  place.caller = address_in(context.uc_mcontext.regs[30]);
#else
  (void)context;
#endif
  return place;
}

/// Only what may be called in a signal handler: no allocation, no stdio.
void report(int number, siginfo_t* info, void* context) {
  std::array<char, 160> text{};
  const auto end =
      fmt::format_to_n(text.data(), text.size(), "tutti: process {} crashed, signal {} at address {}; it was in\n",
                       ::getpid(), number, static_cast<const void*>(info->si_addr));
  ssize_t ignored = ::write(STDERR_FILENO, text.data(), std::min(end.size, text.size()));
  const Place place = place_of(*static_cast<const ucontext_t*>(context));
  // A call through a null pointer has left no frame for backtrace() to go on from, but the caller's address.
  if (place.instruction == nullptr && place.caller != nullptr) {
    constexpr char kNull[] = "a null function pointer, called from\n";
    ignored = ::write(STDERR_FILENO, kNull, sizeof kNull - 1);
    ::backtrace_symbols_fd(&place.caller, 1, STDERR_FILENO);
  }
  (void)ignored;
  std::array<void*, 64> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  ::raise(number);  // the default by now, once this handler has returned
}

}  // namespace

void report_crashes() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what it needs now: in a handler it could not
  // A stack of its own: one that overflowed has no room for the handler.
  static std::array<char, 1 << 16> stack;
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int number : kCrashes) ::sigaction(number, &action, nullptr);
}

}  // namespace tutti
