#include "train/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/terminal.h"

namespace tutti {
namespace {

constexpr double kLongestSilence = 60;  // seconds

/// Of the terminal that stdout is; one that does not say has as many as a page of old.
std::size_t terminal_columns() {
  winsize size = {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Console::Console(bool speaks, Verbosity verbosity)
    : speaks_(speaks), verbosity_(verbosity), terminal_(stdout_is_terminal()) {}

Console::~Console() { clear_progress(); }

void Console::write(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {  // a pipe that does not block, and is full
      pollfd out = {STDOUT_FILENO, POLLOUT, 0};
      ::poll(&out, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  if (done == text.size() || is_lost_) return;
  is_lost_ = true;
  std::fputs(fmt::format("tutti: this output cannot be written ({}): training goes on without it. The run's folder has "
                         "its records\n",
                         std::strerror(errno))
                 .c_str(),
             stderr);
}

void Console::clear_progress() {
  if (!shows_progress_) return;
  write("\r\033[K");
  shows_progress_ = false;
}

void Console::result(const std::string& text) {
  if (!speaks_) return;
  clear_progress();
  write(text + "\n");
  last_line_ = Clock::now();
}

void Console::line(const std::string& text) {
  if (verbosity_ != Verbosity::quiet) result(text);
}

bool Console::wants_detail() const {
  return speaks_ && (is_verbose() ||
                     (verbosity_ == Verbosity::usual && !terminal_ && seconds_since(last_line_) > kLongestSilence));
}

void Console::detail(const std::string& text) {
  if (wants_detail()) result(text);
}

bool Console::is_progress_due() const {
  return speaks_ && terminal_ && verbosity_ != Verbosity::quiet && seconds_since(last_progress_) >= 0.1;
}

void Console::progress(const std::string& text) {
  if (!is_progress_due()) return;
  last_progress_ = Clock::now();
  write("\r\033[K" + text.substr(0, terminal_columns() - 1));
  shows_progress_ = true;
}

std::string readable_duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace tutti
