#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace tutti {

/// Our stdout or stderr, written to only when it takes something.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd), is_terminal_(::isatty(fd) == 1) {}
  int fd() const { return fd_; }
  bool is_empty() const { return next_ == queue_.size(); }
  std::size_t queued() const { return queue_.size() - next_; }
  /// Nobody reads it any more: what is added is dropped.
  bool is_closed() const { return is_closed_; }

  void add_line(std::string_view prefix, std::string_view line);
  void add(std::string_view text);
  /// Call when poll() says that it takes something.
  void write_some();
  void drop() {
    queue_.clear();
    next_ = 0;
  }

 private:
  int fd_;
  bool is_terminal_;
  bool is_closed_ = false;
  std::string queue_;
  std::size_t next_ = 0;  // of queue_; what comes before is written
};

/// What a child writes to its stdout or stderr.
class Stream {
 public:
  /// What to print of a line, if anything.
  using Filter = std::function<std::optional<std::string_view>(std::string_view line)>;

  Stream(Fd fd, std::string prefix, Sink& sink, Filter filter = {})
      : fd_(std::move(fd)), prefix_(std::move(prefix)), sink_(&sink), filter_(std::move(filter)) {}
  /// Passed on as it comes, not in lines.
  Stream(Fd fd, Sink& sink) : fd_(std::move(fd)), sink_(&sink), is_by_line_(false) {}
  const Sink& sink() const { return *sink_; }
  int fd() const { return fd_.get(); }
  bool is_open() const { return static_cast<bool>(fd_); }

  /// Returns the number of bytes taken; 0 when there are none now or, with is_open() then false, no more.
  std::size_t read_some();
  /// Prints what is left of a last line without an end.
  void finish();

 private:
  void take(std::string_view text);
  void pass_on();
  void add_line(std::string_view line);

  Fd fd_;
  std::string prefix_;
  Sink* sink_;  // outlives this
  Filter filter_;
  bool is_by_line_ = true;
  std::string partial_;
};

/// Passes what children write on to our stdout and stderr, in whole lines unless asked otherwise. Nothing in it blocks
/// but the wait for something to do: a reader that stops reading our output must not keep us from noticing anything
/// else.
class LineRelay {
 public:
  LineRelay() : out_(STDOUT_FILENO), err_(STDERR_FILENO) {}
  LineRelay(const LineRelay&) = delete;
  LineRelay& operator=(const LineRelay&) = delete;

  /// Lines of `from`, which does not block, go to these with the prefix.
  void to_stdout(Fd from, const std::string& prefix) { streams_.emplace_back(std::move(from), prefix, out_); }
  void to_stderr(Fd from, const std::string& prefix, Stream::Filter filter = {}) {
    streams_.emplace_back(std::move(from), prefix, err_, std::move(filter));
  }
  /// The same as it comes: where it is all that is written there.
  void to_stdout(Fd from) { streams_.emplace_back(std::move(from), out_); }
  void say(std::string_view line) { err_.add_line("", line); }

  /// Waits until there is something to pass on or to read from `wake_fd`, at most so long (-1: for ever), and passes
  /// on what it can.
  void turn(int wake_fd, int milliseconds);
  /// Takes what is left in the pipes. Only that: a process that a child has left behind may hold the other end open,
  /// and even go on writing.
  void finish();
  /// Some of it, because nobody reads our stdout any more.
  bool has_lost_output() const { return out_.is_closed(); }
  bool has_passed_on_all() const { return out_.is_empty() && err_.is_empty(); }

 private:
  Sink out_, err_;
  std::vector<Stream> streams_;
};

}  // namespace tutti
