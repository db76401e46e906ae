#include <algorithm>

#include "comm/mpi/collective.h"
#include "comm/sum/sum.h"

namespace tutti::mpi {
namespace {

constexpr int kReduce = 0, kGather = 1;  // phases

// The most that Open MPI sends over TCP without asking the receiver first is 64 KB with its header. What it asks for
// comes back behind everything that the receiver is sending itself, so that links would stand still meanwhile.
constexpr std::size_t kChunkBytes = 60 * 1024;
// Chunks that a rank has under way to others. Few: more would only queue up in the network, where ranks that send to
// the same one at the same time push each other's packets out.
constexpr std::size_t kSendsUnderWay = 8;
// Chunks that are expected from each other rank, and that may be sent to one without knowing that it takes them.
constexpr std::size_t kWindow = 4;

class Exchange : public Collective {
 public:
  Exchange(Traffic& traffic, const Call& call, uint64_t number, Slices slices)
      : Collective(traffic, call, number),
        slices_(std::move(slices)),
        me_(traffic.rank),
        unit_(bytes_of(slices_.type)),
        reduces_(traffic.size() > 1 && call.kind != CallKind::all_gather),
        gathers_(traffic.size() > 1 && call.kind != CallKind::reduce_scatter),
        chunk_(chunk_elements()),
        peers_(static_cast<std::size_t>(traffic.size())) {
    for (int r = 0; r < traffic.size(); ++r) most_chunks_ = std::max(most_chunks_, chunks(r));
  }

  bool needs_all() const override { return reduces_ && slices_.count(me_) > 0; }

  void start() override {
    const std::size_t own = chunks(me_);
    if (reduces_) {
      const std::size_t slots = std::min(kWindow, own);
      staging_.resize(slots * (peers_.size() - 1) * chunk_ * unit_);
      arrived_.assign(slots, 0);
      while (expected_ < slots) expect_parts();
    } else {
      finished_ = own;
    }
    for (Peer& peer : peers_)
      if (!reduces_) peer.may_gather = SIZE_MAX;
    move_on();
  }

  bool advance() override {
    bool moved = false;
    // What a completed request allows may complete at once in turn.
    while (true) {
      const std::vector<Requests::Entry> completed = requests_.take_completed();
      if (completed.empty()) break;
      moved = true;
      for (const Requests::Entry& entry : completed) on_complete(entry);
      move_on();
    }
    if (has_all()) {
      is_through_ = true;
      moved = true;
    }
    return moved;
  }

 private:
  struct Peer {
    std::size_t parts_sent = 0;       // chunks of its slice that were sent to it, or are on their way
    std::size_t parts_under_way = 0;  // of them
    std::size_t may_gather = 0;  // chunks of its slice whose own parts have left, so that sums may come in their place
    std::size_t gathered = 0;    // chunks of its slice that are expected or have come
    std::size_t gather_under_way = 0;
  };

  /// What goes out next: chunk after chunk, each to the rank after this one first, so that at any time most ranks send
  /// to different ones.
  struct Turn {
    std::size_t chunk = 0;
    int distance = 1;
    void advance(int ranks) {
      if (++distance < ranks) return;
      distance = 1;
      ++chunk;
    }
  };

  std::size_t chunk_elements() const {
    const int ranks = traffic_.size();
    // With many ranks what is under way would take a lot of memory.
    const std::size_t most_bytes =
        std::max<std::size_t>(kChunkBytes * 8 / static_cast<std::size_t>(std::max(8, ranks)), 16 * 1024);
    std::size_t longest = 1;
    for (int r = 0; r < ranks; ++r) longest = std::max(longest, slices_.count(r));
    // All alike, instead of a short one at the end, which would cost as much as the others.
    const std::size_t pieces = (longest * unit_ + most_bytes - 1) / most_bytes;
    return (longest + pieces - 1) / pieces;
  }
  std::size_t chunks(int rank) const { return (slices_.count(rank) + chunk_ - 1) / chunk_; }
  std::size_t elements(int rank, std::size_t chunk) const {
    return std::min(chunk_, slices_.count(rank) - chunk * chunk_);
  }
  std::byte* place(int rank, std::size_t chunk) const { return slices_.at(rank, chunk * chunk_); }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  /// Where rank's part of a chunk of the own slice arrives.
  std::byte* stage(int rank, std::size_t chunk) {
    const auto others = static_cast<std::size_t>(rank < me_ ? rank : rank - 1);
    return staging_.data() + ((chunk % arrived_.size()) * (peers_.size() - 1) + others) * chunk_ * unit_;
  }

  template <typename Action>
  void for_each_peer(Action action) {
    // Each rank begins with the one after it, so that not all send to the same one first.
    for (int k = 1; k < traffic_.size(); ++k) action((me_ + k) % traffic_.size());
  }

  void expect_parts() {
    const std::size_t chunk = expected_++;
    arrived_[chunk % arrived_.size()] = 0;
    for_each_peer([&](int from) {
      requests_.receive(traffic_.group.collectives, tag(from, me_, kReduce), stage(from, chunk),
                        elements(me_, chunk) * unit_, {from, true, kReduce, chunk});
    });
  }

  void on_complete(const Requests::Entry& entry) {
    Peer& other = peer(entry.peer);
    if (!entry.is_receive) --sends_under_way_;
    if (entry.phase == kReduce && entry.is_receive) {
      ++arrived_[entry.chunk % arrived_.size()];
    } else if (entry.phase == kReduce) {
      // In order: MPI may report them in another.
      left_.insert({entry.peer, entry.chunk});
      while (left_.erase({entry.peer, other.may_gather}) > 0) ++other.may_gather;
    } else if (entry.is_receive) {
      --other.gather_under_way;
    }
  }

  /// Starts whatever may start now.
  void move_on() {
    while (reduces_ && finished_ < expected_ && arrived_[finished_ % arrived_.size()] == peers_.size() - 1) {
      add_up(finished_++);
      if (expected_ < chunks(me_)) expect_parts();
    }
    // Parts first: what others wait for to add up. Sums that are ready meanwhile fill the link later on.
    while (sends_under_way_ < kSendsUnderWay && (send_part() || send_sum())) ++sends_under_way_;
    if (!gathers_) return;
    for_each_peer([&](int from) {
      Peer& other = peer(from);
      while (other.gather_under_way < kWindow && other.gathered < std::min(other.may_gather, chunks(from))) {
        const std::size_t chunk = other.gathered++;
        ++other.gather_under_way;
        requests_.receive(traffic_.group.collectives, tag(from, me_, kGather), place(from, chunk),
                          elements(from, chunk) * unit_, {from, true, kGather, chunk});
      }
    });
  }

  /// The next chunk of the own slice, to the next rank; false if none is ready.
  bool send_sum() {
    if (!gathers_ || sum_turn_.chunk >= finished_) return false;
    send(sum_turn_, kGather, me_);
    sum_turn_.advance(traffic_.size());
    return true;
  }

  /// The next rank's next chunk of its slice, as this rank has it; false if all have gone.
  bool send_part() {
    for (; reduces_ && part_turn_.chunk < most_chunks_; part_turn_.advance(traffic_.size())) {
      const int to = (me_ + part_turn_.distance) % traffic_.size();
      if (part_turn_.chunk >= chunks(to)) continue;
      send(part_turn_, kReduce, to);
      part_turn_.advance(traffic_.size());
      return true;
    }
    return false;
  }

  void send(const Turn& turn, int phase, int slice) {
    const int to = (me_ + turn.distance) % traffic_.size();
    requests_.send(traffic_.group.collectives, tag(me_, to, phase), place(slice, turn.chunk),
                   elements(slice, turn.chunk) * unit_,
                   {to, false, phase, turn.chunk, turn.chunk + kWindow < chunks(slice)});
  }

  void add_up(std::size_t chunk) {
    std::vector<const void*> sources;
    sources.reserve(peers_.size());
    for (int r = 0; r < traffic_.size(); ++r) sources.push_back(r == me_ ? place(me_, chunk) : stage(r, chunk));
    sum_arrays(slices_.type, {place(me_, chunk)}, sources, elements(me_, chunk));
  }

  bool has_all() const {
    if (!requests_.empty() || finished_ < chunks(me_)) return false;
    if (reduces_ && part_turn_.chunk < most_chunks_) return false;
    if (!gathers_) return true;
    if (sum_turn_.chunk < chunks(me_)) return false;
    for (int r = 0; r < traffic_.size(); ++r)
      if (r != me_ && peers_[static_cast<std::size_t>(r)].gathered < chunks(r)) return false;
    return true;
  }

  Slices slices_;
  int me_;
  std::size_t unit_;
  bool reduces_, gathers_;
  std::size_t chunk_;            // elements
  std::size_t most_chunks_ = 0;  // of any slice
  std::vector<Peer> peers_;
  Turn part_turn_, sum_turn_;
  std::size_t sends_under_way_ = 0;

  // The own slice: chunks [0, finished_) are added up, [finished_, expected_) are arriving.
  std::size_t finished_ = 0, expected_ = 0;
  std::vector<std::size_t> arrived_;  // parts, of each chunk that is arriving
  std::vector<std::byte> staging_;
  std::set<std::pair<int, std::size_t>> left_;  // parts that left before an earlier one of the same slice
};

class Broadcast : public Collective {
 public:
  Broadcast(Traffic& traffic, const Call& call, uint64_t number, Span inout)
      : Collective(traffic, call, number),
        number_(number),
        data_(static_cast<std::byte*>(inout.data)),
        bytes_(inout.bytes()),
        chunks_((bytes_ + kChunkBytes - 1) / kChunkBytes) {
    const int ranks = traffic.size();
    const int place = (traffic.rank - call.root + ranks) % ranks;
    if (place > 0) previous_ = (traffic.rank + ranks - 1) % ranks;
    if (place + 1 < ranks) next_ = (traffic.rank + 1) % ranks;
    if (previous_ < 0) received_ = chunks_;
  }

  void start() override { move_on(); }

  bool advance() override {
    bool moved = false;
    while (true) {
      const std::vector<Requests::Entry> completed = requests_.take_completed();
      if (completed.empty()) break;
      moved = true;
      for (const Requests::Entry& entry : completed) {
        if (!entry.is_receive) {
          --sends_under_way_;
          continue;
        }
        early_.insert(entry.chunk);
        while (early_.erase(received_) > 0) ++received_;
      }
      move_on();
    }
    // The root hears from nobody; where that is rank 0, it can know at least that all have called.
    if (requests_.empty() && received_ == chunks_ && (next_ < 0 || sent_ == chunks_) &&
        traffic_.control.is_agreed(number_)) {
      is_through_ = true;
      moved = true;
    }
    return moved;
  }

 private:
  std::size_t bytes(std::size_t chunk) const { return std::min(kChunkBytes, bytes_ - chunk * kChunkBytes); }

  void move_on() {
    while (previous_ >= 0 && expected_ < std::min(chunks_, received_ + kWindow)) {
      const std::size_t chunk = expected_++;
      requests_.receive(traffic_.group.collectives, tag(previous_, traffic_.rank, kGather), data_ + chunk * kChunkBytes,
                        bytes(chunk), {previous_, true, kGather, chunk});
    }
    while (next_ >= 0 && sent_ < received_ && sends_under_way_ < kWindow) {
      const std::size_t chunk = sent_++;
      ++sends_under_way_;
      requests_.send(traffic_.group.collectives, tag(traffic_.rank, next_, kGather), data_ + chunk * kChunkBytes,
                     bytes(chunk), {next_, false, kGather, chunk, chunk + kWindow < chunks_});
    }
  }

  uint64_t number_;
  std::byte* data_;
  std::size_t bytes_, chunks_;
  int previous_ = -1, next_ = -1;
  std::size_t expected_ = 0, received_ = 0, sent_ = 0, sends_under_way_ = 0;  // chunks
  std::set<std::size_t> early_;                                               // that came before an earlier one
};

}  // namespace

std::unique_ptr<Collective> make_exchange(Traffic& traffic, const Call& call, uint64_t number, Slices slices) {
  return std::make_unique<Exchange>(traffic, call, number, std::move(slices));
}

std::unique_ptr<Collective> make_broadcast(Traffic& traffic, const Call& call, uint64_t number, Span inout) {
  return std::make_unique<Broadcast>(traffic, call, number, inout);
}

}  // namespace tutti::mpi
