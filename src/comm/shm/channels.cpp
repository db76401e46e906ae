#include "comm/shm/channels.h"

#include <algorithm>
#include <cstring>

namespace tutti::shm {
namespace {

// Messages are padded to this, so that a header never wraps around the end of the ring.
constexpr std::size_t kUnit = 16;
// The other side is told after so many bytes, to work at the same time.
constexpr std::size_t kPieceBytes = 32 * 1024;
// With so many bytes waiting for their receive, and none posted, a sender has to wait.
constexpr std::size_t kMaxUnexpectedBytes = 64 * 1024 * 1024;

struct Header {
  uint64_t bytes;
  int32_t tag;
  uint32_t padding;
};
static_assert(sizeof(Header) == kUnit);

constexpr std::size_t padded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

/// A ring of bytes: positions grow forever.
struct Ring {
  std::byte* memory;
  std::size_t size;

  void write(uint64_t position, const void* data, std::size_t bytes) const {
    if (bytes == 0) return;
    const std::size_t at = position % size;
    const std::size_t first = std::min(bytes, size - at);
    std::memcpy(memory + at, data, first);
    if (first < bytes) std::memcpy(memory, static_cast<const std::byte*>(data) + first, bytes - first);
  }
  void read(uint64_t position, void* data, std::size_t bytes) const {
    if (bytes == 0) return;
    const std::size_t at = position % size;
    const std::size_t first = std::min(bytes, size - at);
    std::memcpy(data, memory + at, first);
    if (first < bytes) std::memcpy(static_cast<std::byte*>(data) + first, memory, bytes - first);
  }
};

/// How many of the next `n` bytes of a padded message are data.
std::size_t data_in(std::size_t bytes, std::size_t moved, std::size_t n) {
  return moved >= bytes ? 0 : std::min(n, bytes - moved);
}

std::string wrong_length(int from, int tag, std::size_t sent, std::size_t expected) {
  return fmt::format("rank {} sent {} bytes with tag {}, but the receive expects {} bytes.", from, sent, tag, expected);
}

}  // namespace

Channels::Channels(Segment& segment) : segment_(segment), peers_(static_cast<std::size_t>(segment.size())) {}

void Channels::post_send(std::shared_ptr<PointToPoint> send) {
  const int to = send->peer;
  peers_[static_cast<std::size_t>(to)].sends.push_back(std::move(send));
  push(to);
}

void Channels::post_receive(std::shared_ptr<PointToPoint> receive) {
  const int from = receive->peer;
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  const auto early = std::find_if(peer.unexpected.begin(), peer.unexpected.end(),
                                  [&](const Unexpected& message) { return message.tag == receive->tag; });
  if (early == peer.unexpected.end()) {
    peer.receives.push_back(std::move(receive));
  } else {
    const bool fits = early->bytes.size() == receive->bytes;
    if (!fits) receive->fail_alone(wrong_length(from, receive->tag, early->bytes.size(), receive->bytes));
    if (early->is_complete) {
      if (fits) {
        if (receive->bytes > 0) std::memcpy(receive->data, early->bytes.data(), receive->bytes);
        receive->succeed();
      }
    } else {
      // Half of it is still to come: the rest goes straight to where it belongs.
      if (fits) {
        std::memcpy(receive->data, early->bytes.data(), std::min(peer.moved, receive->bytes));
        peer.receive = std::move(receive);
      }
      peer.early = nullptr;
    }
    peer.unexpected_bytes -= early->bytes.size();
    peer.unexpected.erase(early);
  }
  pull(from);  // it may have stopped for lack of a receive
}

bool Channels::advance() {
  std::atomic<uint64_t>& mail = segment_.own().mail;
  if (mail.load() == 0) return false;
  const uint64_t news = mail.exchange(0);
  bool moved = false;
  for (int r = 0; r < segment_.size(); ++r) {
    if ((news >> r & 1) == 0) continue;
    moved |= push(r);
    moved |= pull(r);
  }
  return moved;
}

bool Channels::push(int to) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.sends.empty()) return false;
  ChannelHeader& channel = segment_.channel(segment_.rank(), to);
  const Ring ring{segment_.ring(segment_.rank(), to), segment_.ring_bytes()};
  uint64_t put = channel.put.load();
  bool moved = false;
  while (!peer.sends.empty()) {
    PointToPoint& send = *peer.sends.front();
    std::size_t room = ring.size - (put - channel.taken.load());
    if (!send.has_header) {
      if (room < sizeof(Header)) break;
      const Header header{send.bytes, send.tag, 0};
      ring.write(put, &header, sizeof header);
      put += sizeof header;
      room -= sizeof header;
      send.has_header = true;
    }
    const std::size_t n = std::min({room, padded(send.bytes) - send.moved, kPieceBytes});
    ring.write(put, send.data + send.moved, data_in(send.bytes, send.moved, n));
    put += n;
    send.moved += n;
    channel.put.store(put);
    notify(to);
    moved = true;
    if (send.moved == padded(send.bytes)) {
      send.succeed();
      peer.sends.pop_front();
    } else if (n == 0) {
      break;
    }
  }
  return moved;
}

bool Channels::pull(int from) {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  ChannelHeader& channel = segment_.channel(from, segment_.rank());
  const Ring ring{segment_.ring(from, segment_.rank()), segment_.ring_bytes()};
  uint64_t taken = channel.taken.load();
  bool moved = false;
  while (true) {
    std::size_t available = channel.put.load() - taken;
    if (available == 0) break;
    if (!peer.has_message) {
      if (!may_take_message(peer)) break;
      Header header;
      ring.read(taken, &header, sizeof header);
      taken += sizeof header;
      available -= sizeof header;
      begin_message(from, header.tag, header.bytes);
    }
    const std::size_t n = std::min({available, padded(peer.bytes) - peer.moved, kPieceBytes});
    std::byte* const target = peer.receive ? peer.receive->data : peer.early ? peer.early->bytes.data() : nullptr;
    if (target != nullptr) ring.read(taken, target + peer.moved, data_in(peer.bytes, peer.moved, n));
    taken += n;
    peer.moved += n;
    channel.taken.store(taken);
    notify(from);
    moved = true;
    if (peer.moved == padded(peer.bytes)) end_message(peer);
  }
  return moved;
}

bool Channels::may_take_message(const Peer& peer) const {
  return !peer.receives.empty() || peer.unexpected_bytes < kMaxUnexpectedBytes;
}

void Channels::begin_message(int from, int tag, std::size_t bytes) {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  peer.has_message = true;
  peer.bytes = bytes;
  peer.moved = 0;
  const auto posted = std::find_if(peer.receives.begin(), peer.receives.end(),
                                   [&](const auto& receive) { return receive->tag == tag; });
  if (posted == peer.receives.end()) {
    peer.unexpected.push_back({tag, std::vector<std::byte>(bytes), false});
    peer.unexpected_bytes += bytes;
    peer.early = &peer.unexpected.back();
    return;
  }
  std::shared_ptr<PointToPoint> receive = *posted;
  peer.receives.erase(posted);
  if (receive->bytes == bytes) {
    peer.receive = std::move(receive);
  } else {
    receive->fail_alone(wrong_length(from, tag, bytes, receive->bytes));
  }
}

void Channels::end_message(Peer& peer) {
  if (peer.receive) peer.receive->succeed();
  if (peer.early != nullptr) peer.early->is_complete = true;
  peer.receive.reset();
  peer.early = nullptr;
  peer.has_message = false;
}

void Channels::notify(int rank) {
  segment_.state(rank).mail.fetch_or(uint64_t{1} << segment_.rank());
  segment_.state(rank).bell.ring();
}

bool Channels::notice_departures() {
  bool moved = false;
  for (int r = 0; r < segment_.size(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (peer.sends.empty() && peer.receives.empty() && !peer.receive) continue;
    if (segment_.state(r).has_left.load() == 0) continue;
    pull(r);  // what it sent before it left
    fail_peer(peer, segment_.describe(r) + " has left before it sent or took this message.");
    moved = true;
  }
  return moved;
}

uint64_t Channels::awaited() const {
  uint64_t ranks = 0;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (!peers_[r].sends.empty() || !peers_[r].receives.empty() || peers_[r].receive) ranks |= uint64_t{1} << r;
  return ranks;
}

std::string Channels::call() const {
  for (const Peer& peer : peers_) {
    const PointToPoint* const receive = peer.receive             ? peer.receive.get()
                                        : !peer.receives.empty() ? peer.receives.front().get()
                                                                 : nullptr;
    if (receive != nullptr) return fmt::format("receive of {} bytes with tag {}", receive->bytes, receive->tag);
    if (!peer.sends.empty())
      return fmt::format("send of {} bytes with tag {}", peer.sends.front()->bytes, peer.sends.front()->tag);
  }
  return "";
}

bool Channels::fail_peer(Peer& peer, const std::string& text) {
  if (peer.sends.empty() && peer.receives.empty() && !peer.receive) return false;
  for (const auto& send : peer.sends) send->fail(text);
  for (const auto& receive : peer.receives) receive->fail(text);
  if (peer.receive) peer.receive->fail(text);
  peer.sends.clear();
  peer.receives.clear();
  peer.receive.reset();
  return true;
}

bool Channels::fail_all(const std::string& text) {
  bool any = false;
  for (Peer& peer : peers_) any |= fail_peer(peer, text);
  return any;
}

}  // namespace tutti::shm
