#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tutti/error.h"

namespace tutti {

void Fd::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void do_not_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot create a pipe: {}", std::strerror(errno));
  return {Fd(ends[0]), Fd(ends[1])};
}

Pipe make_polled_pipe() {
  Pipe pipe = make_pipe();
  do_not_block(pipe.read_end.get());
  return pipe;
}

Fd open_null() {
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) throw Error("cannot open /dev/null: {}", std::strerror(errno));
  return null;
}

}  // namespace tutti
