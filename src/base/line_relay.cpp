#include "base/line_relay.h"

#include <poll.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxQueued = 1 << 20;  // of output not yet written; the children's writes wait beyond that
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

void Sink::add(std::string_view text) {
  if (!is_closed_) queue_ += text;
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
  if (!is_by_line_) {
    sink_->add(text);
    return;
  }
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

void LineRelay::turn(int wake_fd, int milliseconds) {
  std::vector<pollfd> polled = {{wake_fd, POLLIN, 0}};
  for (const Sink* sink : {&out_, &err_}) polled.push_back({sink->is_empty() ? -1 : sink->fd(), POLLOUT, 0});
  for (const Stream& stream : streams_)
    polled.push_back({stream.sink().queued() < kMaxQueued ? stream.fd() : -1, POLLIN, 0});
  if (::poll(polled.data(), polled.size(), milliseconds) < 0) {
    if (errno != EINTR) throw Error("poll failed: {}", std::strerror(errno));
    return;
  }
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (polled[3 + i].revents != 0) streams_[i].read_some();
  if (polled[1].revents != 0) out_.write_some();
  if (polled[2].revents != 0) err_.write_some();
}

void LineRelay::finish() {
  constexpr std::size_t kMaxPipe = 1 << 20;
  for (Stream& stream : streams_) {
    std::size_t taken = 0;
    while (stream.is_open() && taken < kMaxPipe) {
      const std::size_t got = stream.read_some();
      if (got == 0) break;
      taken += got;
    }
    stream.finish();
  }
  streams_.clear();
}

}  // namespace tutti
