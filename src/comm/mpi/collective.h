#pragma once

#include <memory>
#include <set>
#include <vector>

#include "comm/call.h"
#include "comm/mpi/traffic.h"
#include "comm/pending.h"

namespace tutti::mpi {

/// The data of a collective and how it is cut: rank r's slice is the elements [begin[r], begin[r + 1]).
struct Slices {
  std::byte* data = nullptr;
  DataType type = DataType::f32;
  std::vector<std::size_t> begin;

  std::size_t count(int rank) const {
    return begin[static_cast<std::size_t>(rank) + 1] - begin[static_cast<std::size_t>(rank)];
  }
  std::byte* at(int rank, std::size_t element) const {
    return data + (begin[static_cast<std::size_t>(rank)] + element) * bytes_of(type);
  }
};

/// One collective under way on this rank.
class Collective : public Pending {
 public:
  Collective(Traffic& traffic, const Call& call, uint64_t number);

  const Call& call() const { return call_; }
  virtual void start() = 0;
  /// Goes as far as possible without waiting; true if that was any way.
  virtual bool advance() = 0;

  bool is_through() const { return is_through_; }
  /// Does it end on this rank only after every other rank has begun it?
  virtual bool needs_all() const { return false; }

  std::set<int> awaited() const { return requests_.awaited(); }
  bool awaits_silent_rank() const { return requests_.awaits_silent_rank(); }
  void abandon() { requests_.abandon(); }

 protected:
  /// Messages of different collectives, of calls that differ, of different phases and between different ranks of the
  /// same processes never meet.
  int tag(int from, int to, int phase) const;

  Traffic& traffic_;
  Requests requests_;
  bool is_through_ = false;

 private:
  Call call_;
  int own_tag_;
};

/// Every rank sends each other rank its part of that rank's slice, which adds them in rank order; and then, or only,
/// every rank sends its slice to all others. As many bytes as in a ring, and only one start-up for each half; long
/// slices go in chunks, so that adding and both halves overlap.
std::unique_ptr<Collective> make_exchange(Traffic& traffic, const Call& call, uint64_t number, Slices slices);

/// Small data: every rank gathers that of all others, in few messages, and adds up for itself. With no data, a barrier.
std::unique_ptr<Collective> make_small_all_reduce(Traffic& traffic, const Call& call, uint64_t number, Span inout);

/// From rank to rank, in chunks, beginning with the root.
std::unique_ptr<Collective> make_broadcast(Traffic& traffic, const Call& call, uint64_t number, Span inout);

}  // namespace tutti::mpi
