#include <algorithm>

#include "comm/mpi/collective.h"
#include "comm/sum/sum.h"

namespace tutti::mpi {
namespace {

/// Every rank gathers what all others bring, in rounds: in each it sends all it has so far to one rank and gets as much
/// from another, so that after log2(ranks) rounds it has everything (Bruck et al., 1997) and adds up for itself, in
/// rank order. One message per rank and round: with few cores, or many ranks, messages are what costs time here.
class SmallAllReduce : public Collective {
 public:
  SmallAllReduce(Traffic& traffic, const Call& call, uint64_t number, Span inout)
      : Collective(traffic, call, number),
        inout_(inout),
        parts_(inout.bytes() * static_cast<std::size_t>(traffic.size())) {}

  bool needs_all() const override { return true; }

  void start() override {
    if (inout_.bytes() > 0)
      std::copy_n(static_cast<const std::byte*>(inout_.data), inout_.bytes(), part(traffic_.rank));
    begin_round();
  }

  bool advance() override {
    bool moved = false;
    while (!is_through_) {
      moved |= !requests_.take_completed().empty();
      if (!requests_.empty()) return moved;
      gathered_ += round_size();
      if (gathered_ < traffic_.size())
        begin_round();
      else
        finish();
    }
    return true;
  }

 private:
  int round_size() const { return std::min(gathered_, traffic_.size() - gathered_); }

  void begin_round() {
    const int me = traffic_.rank, ranks = traffic_.size();
    if (gathered_ == ranks) return;
    const int from = (me + gathered_) % ranks, to = (me - gathered_ + ranks) % ranks;
    const std::size_t bytes = inout_.bytes() * static_cast<std::size_t>(round_size());
    requests_.receive(traffic_.group.collectives, tag(from, me, 0), part(from), bytes, {from, true});
    requests_.send(traffic_.group.collectives, tag(me, to, 0), part(me), bytes, {to, false});
  }

  void finish() {
    if (inout_.count > 0) {
      std::vector<const void*> sources;
      sources.reserve(static_cast<std::size_t>(traffic_.size()));
      for (int r = 0; r < traffic_.size(); ++r) sources.push_back(part(r));
      sum_arrays(inout_.type, {inout_.data}, sources, inout_.count);
    }
    is_through_ = true;
  }

  /// This rank's part comes first, the others follow by rank, so that those of a round are neighbours.
  std::byte* part(int rank) {
    const int place = (rank - traffic_.rank + traffic_.size()) % traffic_.size();
    return parts_.data() + inout_.bytes() * static_cast<std::size_t>(place);
  }

  Span inout_;
  std::vector<std::byte> parts_;
  int gathered_ = 1;  // parts that are here
};

}  // namespace

std::unique_ptr<Collective> make_small_all_reduce(Traffic& traffic, const Call& call, uint64_t number, Span inout) {
  return std::make_unique<SmallAllReduce>(traffic, call, number, inout);
}

}  // namespace tutti::mpi
