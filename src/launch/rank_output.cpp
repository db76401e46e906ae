#include "launch/rank_output.h"

#include <cerrno>
#include <climits>

namespace tutti {
namespace {

constexpr std::size_t kReadBytes = 1 << 16;
constexpr std::size_t kMaxLine = 16 << 20;  // what is longer is printed in pieces

}  // namespace

void Sink::add_line(std::string_view prefix, std::string_view line) {
  if (is_closed_) return;
  if (is_terminal_) queue_ += "\r\x1b[K";  // rank 0 may be showing a progress line there
  queue_ += prefix;
  queue_ += line;
  queue_ += '\n';
}

void Sink::write_some() {
  // A pipe that poll() calls writable takes PIPE_BUF bytes at once, whole. Of those, whole lines if possible: rank 0
  // writes to the same place.
  std::string_view piece = std::string_view(queue_).substr(next_, PIPE_BUF);
  if (const auto end = piece.rfind('\n'); end != std::string_view::npos) piece = piece.substr(0, end + 1);
  const ssize_t put = ::write(fd_, piece.data(), piece.size());
  if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (put < 0) {  // nobody reads it any more; rank 0 decides whether that matters
    is_closed_ = true;
    drop();
    return;
  }
  next_ += static_cast<std::size_t>(put);
  if (is_empty()) {
    drop();
  } else if (next_ > kMaxQueued) {
    queue_.erase(0, std::exchange(next_, 0));
  }
}

std::size_t Stream::read_some() {
  char buffer[kReadBytes];
  ssize_t got = 0;
  do got = ::read(fd_.get(), buffer, sizeof buffer);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    take({buffer, static_cast<std::size_t>(got)});
    return static_cast<std::size_t>(got);
  }
  if (got == 0 || errno != EAGAIN) finish();
  return 0;
}

void Stream::finish() {
  if (!partial_.empty()) pass_on();
  fd_.close();
}

void Stream::take(std::string_view text) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (partial_.empty()) {
      add_line(text.substr(0, end));
    } else {
      partial_ += text.substr(0, end);
      pass_on();
    }
    text.remove_prefix(end + 1);
  }
  partial_ += text;
  if (partial_.size() >= kMaxLine) pass_on();
}

void Stream::pass_on() {
  add_line(partial_);
  partial_.clear();
}

void Stream::add_line(std::string_view line) {
  const auto shown = filter_ ? filter_(line) : line;
  if (shown) sink_->add_line(prefix_, *shown);
}

}  // namespace tutti
