#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "tutti/communicator.h"

namespace tutti::shm {

/// Throws CommFailed("WHAT: the text of errno").
[[noreturn]] void throw_errno(const std::string& what);

// Sockets in the abstract name space of Unix sockets: a name vanishes with its last owner, however that ends. Messages
// keep their boundaries (SOCK_SEQPACKET).

/// Empty if somebody else listens under that name.
std::optional<Fd> listen_at(const std::string& name);
/// Who listens under a name is of another user, and not one that we meet.
class ForeignPeer : public CommFailed {
 public:
  using CommFailed::CommFailed;
};
/// Empty if nobody listens (yet). Throws ForeignPeer.
std::optional<Fd> connect_to(const std::string& name);
/// Empty if nobody came until `deadline`, or who came belongs to another user.
std::optional<Fd> accept_from(const Fd& listener);

/// False if the other side is gone.
bool send_message(const Fd& socket, const void* data, std::size_t bytes, const std::vector<int>& fds);

struct Message {
  std::string data;
  std::vector<Fd> fds;
};
/// What has arrived; empty if the other side is gone.
std::optional<Message> receive_message(const Fd& socket);

/// Waits until one of the descriptors has something to read or has been closed; false at the deadline.
bool wait_readable(const std::vector<int>& fds, Clock::time_point deadline);

}  // namespace tutti::shm
