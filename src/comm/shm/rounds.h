#pragma once

#include "comm/shm/segment.h"

namespace tutti::shm {

/// The rhythm of all collectives. In each round every rank puts something before the others (bytes in its stage, a
/// call in its line, or only the news that it has come so far), arrives, and once all have arrived uses what they put
/// there.
///
/// Stages and lines exist twice and alternate. That is enough: a rank that fills its stage for round k + 2 has seen
/// all others arrive in round k + 1, so all of them are done with what it put there in round k.
class Rounds {
 public:
  /// `segment` must outlive this.
  explicit Rounds(Segment& segment) : segment_(segment) {}

  int rank() const { return segment_.rank(); }
  int size() const { return segment_.size(); }

  /// From here on own_stage() may be filled.
  void begin() {
    ++current_;
    next_ = 0;
  }
  void announce(const Call& call) { line(rank()).call = call; }
  void arrive() {
    line(rank()).arrived.store(current_);
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) segment_.state(r).bell.ring();
    }
  }
  bool all_have_arrived() {
    while (next_ < size() && has_arrived(next_)) ++next_;
    return next_ == size();
  }
  bool has_arrived(int rank) { return line(rank).arrived.load() >= current_; }

  std::byte* stage(int rank) { return segment_.stage(rank, parity()); }
  /// Still untouched by its owner until this rank, too, has arrived in the current round.
  const std::byte* previous_stage(int rank) { return segment_.stage(rank, 1 - parity()); }
  const Call& call(int rank) { return line(rank).call; }

 private:
  int parity() const { return static_cast<int>(current_ % 2); }
  RoundLine& line(int rank) { return segment_.state(rank).rounds[parity()]; }

  Segment& segment_;
  uint64_t current_ = 0;
  int next_ = 0;  // all ranks before it have arrived
};

}  // namespace tutti::shm
