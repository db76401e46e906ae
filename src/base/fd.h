#pragma once

#include <utility>

namespace tutti {

/// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read_end;
  Fd write_end;
};

/// Neither end survives exec.
Pipe make_pipe();
/// For a loop around poll(): its read end does not block.
Pipe make_polled_pipe();
void do_not_block(int fd);
/// /dev/null, to read and to write. Does not survive exec.
Fd open_null();

}  // namespace tutti
