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
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  do_not_block(ends[0]);
  return pipe;
}

}  // namespace tutti
