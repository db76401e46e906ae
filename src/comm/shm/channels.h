#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "comm/pending.h"
#include "comm/shm/segment.h"

namespace tutti::shm {

/// One send or receive under way.
struct PointToPoint : Pending {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  int tag = 0;
  std::size_t moved = 0;  // of the bytes and the padding behind them
  bool has_header = false;
};

/// Messages between pairs of ranks. Each message is a header (tag and length) and its bytes, in a stream through the
/// ring of its pair and direction. The receiver takes from the ring whatever comes, into the posted receive of that
/// tag, or into memory of its own until one is posted. One thread.
class Channels {
 public:
  /// `segment` must outlive the channels.
  explicit Channels(Segment& segment);

  void post_send(std::shared_ptr<PointToPoint> send);
  void post_receive(std::shared_ptr<PointToPoint> receive);
  /// Moves what can be moved without waiting; true if that was anything.
  bool advance();
  /// Fails what can never complete because its peer has left; true if that was anything.
  bool notice_departures();
  /// The ranks that messages are under way to or from, as bits.
  uint64_t awaited() const;
  /// One of these messages; only where there are any.
  std::string call() const;
  /// True if there was anything to fail.
  bool fail_all(const std::string& text);

 private:
  /// A message that came before its receive was posted.
  struct Unexpected {
    int tag = 0;
    std::vector<std::byte> bytes;
    bool is_complete = false;
  };
  struct Peer {
    std::deque<std::shared_ptr<PointToPoint>> sends;
    std::list<std::shared_ptr<PointToPoint>> receives;  // posted, no message yet
    std::list<Unexpected> unexpected;
    std::size_t unexpected_bytes = 0;

    // The message being taken from the ring. Neither receive nor `early` are set while its bytes are thrown away.
    bool has_message = false;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    std::shared_ptr<PointToPoint> receive;
    Unexpected* early = nullptr;
  };

  bool push(int to);
  bool pull(int from);
  void begin_message(int from, int tag, std::size_t bytes);
  void end_message(Peer& peer);
  bool may_take_message(const Peer& peer) const;
  void notify(int rank);
  bool fail_peer(Peer& peer, const std::string& text);

  Segment& segment_;
  std::vector<Peer> peers_;
};

}  // namespace tutti::shm
