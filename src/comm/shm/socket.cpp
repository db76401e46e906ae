#include "comm/shm/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tutti::shm {
namespace {

constexpr std::size_t kMaxMessageBytes = 16 * 1024;
constexpr std::size_t kMaxFds = 128;

struct Address {
  sockaddr_un data{};
  socklen_t length = 0;
};

/// A leading zero byte makes the name abstract; it has no terminator.
Address abstract_address(const std::string& name) {
  Address address;
  address.data.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.data.sun_path) - 1);
  std::memcpy(address.data.sun_path + 1, name.data(), length);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

Fd make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw_errno("cannot create a Unix socket");
  return socket;
}

/// The user of the process at the other end; of a listener, who called listen(). -1 where the kernel does not say.
uid_t user_of_peer(const Fd& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : static_cast<uid_t>(-1);
}

}  // namespace

void throw_errno(const std::string& what) { throw CommFailed("{}: {}", what, std::strerror(errno)); }

std::optional<Fd> listen_at(const std::string& name) {
  Fd socket = make_socket();
  const Address address = abstract_address(name);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.data), address.length) != 0) {
    if (errno == EADDRINUSE) return std::nullopt;
    throw_errno("cannot name a Unix socket");
  }
  if (listen(socket.get(), 128) != 0) throw_errno("cannot listen on a Unix socket");
  return socket;
}

std::optional<Fd> connect_to(const std::string& name) {
  Fd socket = make_socket();
  const Address address = abstract_address(name);
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.data), address.length) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED || errno == EAGAIN) return std::nullopt;
    throw_errno("cannot connect to rank 0 over a Unix socket");
  }
  if (const uid_t user = user_of_peer(socket); user != geteuid()) {
    throw ForeignPeer(
        "user {} has taken the name under which the ranks of user {} meet on this machine. Start the job again, which "
        "gives it another name, and ask that user why (docs: SECURITY.md).",
        user, geteuid());
  }
  return socket;
}

std::optional<Fd> accept_from(const Fd& listener) {
  Fd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN) return std::nullopt;
    throw_errno("cannot accept a connection");
  }
  if (user_of_peer(socket) != geteuid()) return std::nullopt;
  return socket;
}

bool send_message(const Fd& socket, const void* data, std::size_t bytes, const std::vector<int>& fds) {
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
  }
  while (true) {
    if (sendmsg(socket.get(), &header, MSG_NOSIGNAL) >= 0) return true;
    if (errno == EPIPE || errno == ECONNRESET) return false;
    if (errno != EINTR) throw_errno("cannot send over a Unix socket");
  }
}

std::optional<Message> receive_message(const Fd& socket) {
  Message message;
  message.data.resize(kMaxMessageBytes);
  iovec part{message.data.data(), message.data.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t received;
  do {
    received = recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) return std::nullopt;
  message.data.resize(static_cast<std::size_t>(received));
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((at->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(at), fds.size() * sizeof(int));
    for (const int fd : fds) message.fds.emplace_back(fd);
  }
  return message;
}

bool wait_readable(const std::vector<int>& fds, Clock::time_point deadline) {
  std::vector<pollfd> polled;
  polled.reserve(fds.size());
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(0, left)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("cannot poll");
    if (left <= 0) return false;
  }
}

}  // namespace tutti::shm
