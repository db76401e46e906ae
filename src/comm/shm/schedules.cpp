#include "comm/shm/schedules.h"

#include <algorithm>
#include <cstring>

#include "comm/sum/sum.h"

namespace tutti::shm {
namespace {

// Chunks that fit the second-level cache together with what they are added to.
constexpr std::size_t kChunkBytes = 128 * 1024;
static_assert(2 * kChunkBytes <= kStageBytes);
// Up to this many ranks it is cheaper that every rank adds everything than to share out the additions and collect
// the results.
constexpr int kMaxRanksAddingEverything = 3;
constexpr std::size_t kCacheLine = 64;

struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t count() const { return end - begin; }
};

/// Where part `part` of `parts` of `count` elements lies. Borders between parts are multiples of `unit` elements away
/// from `phase`, so that two ranks do not write to one cache line.
Range part_of(std::size_t count, int part, int parts, std::size_t unit, std::size_t phase = 0) {
  const auto border = [&](int p) {
    if (p == 0) return std::size_t{0};
    const std::size_t even = count / static_cast<std::size_t>(parts) * static_cast<std::size_t>(p);
    return p == parts ? count : std::min(count, (even + unit - 1) / unit * unit + phase);
  };
  return {border(part), border(part + 1)};
}

/// Common ground of all schedules.
class SlicesSchedule : public Schedule {
 public:
  SlicesSchedule(Rounds& rounds, Slices slices) : rounds_(rounds), slices_(std::move(slices)) {}

 protected:
  int rank() const { return rounds_.rank(); }
  int size() const { return rounds_.size(); }
  std::size_t elements_in(std::size_t bytes) const { return bytes / bytes_of(slices_.type); }
  void copy(void* to, const void* from, std::size_t elements) const {
    if (elements > 0) std::memcpy(to, from, slices_.bytes(elements));
  }
  void sum(std::size_t elements) const { sum_arrays(slices_.type, targets_, sources_, elements); }

  Rounds& rounds_;
  Slices slices_;
  std::vector<void*> targets_;
  std::vector<const void*> sources_;
};

/// Every rank puts a chunk into its stage and adds up the chunks of all.
class AddEverything : public SlicesSchedule {
 public:
  using SlicesSchedule::SlicesSchedule;

  std::size_t rounds() const override { return (slices_.count() + chunk() - 1) / chunk(); }

  void before(std::size_t round) override {
    const Range range = chunk_range(round);
    copy(rounds_.stage(rank()), slices_.at(range.begin), range.count());
  }

  void after(std::size_t round) override {
    const Range range = chunk_range(round);
    targets_.assign(1, slices_.at(range.begin));
    sources_.clear();
    for (int r = 0; r < size(); ++r) {
      sources_.push_back(r == rank() ? slices_.at(range.begin) : rounds_.stage(r));
    }
    sum(range.count());
  }

 private:
  std::size_t chunk() const { return elements_in(kChunkBytes); }
  Range chunk_range(std::size_t round) const {
    return {round * chunk(), std::min(slices_.count(), (round + 1) * chunk())};
  }
};

/// Each rank adds up its part of every chunk. Round k carries two things in the two halves of a stage: chunk k as each
/// rank brings it, and the sums of chunk k - 1, each part from the rank that made it.
class AddInParts : public SlicesSchedule {
 public:
  using SlicesSchedule::SlicesSchedule;

  std::size_t rounds() const override { return chunks() + 1; }

  void before(std::size_t round) override {
    if (round > 0) {
      const Range part = part_range(chunk_range(round - 1), rank());
      targets_.assign(1, rounds_.stage(rank()) + kChunkBytes);
      sources_.clear();
      for (int r = 0; r < size(); ++r) sources_.push_back(rounds_.previous_stage(r) + slices_.bytes(part.begin));
      sum(part.count());
    }
    if (round < chunks()) {
      const Range range = chunk_range(round);
      copy(rounds_.stage(rank()), slices_.at(range.begin), range.count());
    }
  }

  void after(std::size_t round) override {
    if (round == 0) return;
    const Range range = chunk_range(round - 1);
    for (int r = 0; r < size(); ++r) {
      const Range part = part_range(range, r);
      copy(slices_.at(range.begin + part.begin), rounds_.stage(r) + kChunkBytes, part.count());
    }
  }

 private:
  std::size_t chunk() const { return elements_in(kChunkBytes); }
  std::size_t chunks() const { return (slices_.count() + chunk() - 1) / chunk(); }
  Range chunk_range(std::size_t round) const {
    return {round * chunk(), std::min(slices_.count(), (round + 1) * chunk())};
  }
  Range part_range(const Range& range, int rank) const {
    return part_of(range.count(), rank, size(), elements_in(kCacheLine));
  }
};

/// A stage carries a piece of every slice; the owner of a slice adds up its pieces.
class StagedReduceScatter : public SlicesSchedule {
 public:
  using SlicesSchedule::SlicesSchedule;

  std::size_t rounds() const override {
    std::size_t longest = 0;
    for (int r = 0; r < size(); ++r) longest = std::max(longest, slices_.count(r));
    return (longest + piece() - 1) / piece();
  }

  void before(std::size_t round) override {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      const Range range = piece_range(r, round);
      copy(place(rank(), r), slices_.at(range.begin), range.count());
    }
  }

  void after(std::size_t round) override {
    const Range range = piece_range(rank(), round);
    if (range.count() == 0) return;
    targets_.assign(1, slices_.at(range.begin));
    sources_.clear();
    for (int r = 0; r < size(); ++r) {
      sources_.push_back(r == rank() ? slices_.at(range.begin) : place(r, rank()));
    }
    sum(range.count());
  }

 private:
  std::size_t piece() const {
    return elements_in(kStageBytes / static_cast<std::size_t>(size()) / kCacheLine * kCacheLine);
  }
  Range piece_range(int owner, std::size_t round) const {
    const std::size_t begin = std::min(slices_.count(owner), round * piece());
    const std::size_t end = std::min(slices_.count(owner), begin + piece());
    return {slices_.first(owner) + begin, slices_.first(owner) + end};
  }
  std::byte* place(int stage, int owner) {
    return rounds_.stage(stage) + slices_.bytes(static_cast<std::size_t>(owner) * piece());
  }
};

/// A stage carries a chunk of its rank's slice; the others copy it.
class StagedAllGather : public SlicesSchedule {
 public:
  using SlicesSchedule::SlicesSchedule;

  std::size_t rounds() const override {
    std::size_t longest = 0;
    for (int r = 0; r < size(); ++r) longest = std::max(longest, slices_.count(r));
    return (longest + chunk() - 1) / chunk();
  }

  void before(std::size_t round) override {
    const Range range = chunk_range(rank(), round);
    copy(rounds_.stage(rank()), slices_.at(range.begin), range.count());
  }

  void after(std::size_t round) override {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      const Range range = chunk_range(r, round);
      copy(slices_.at(range.begin), rounds_.stage(r), range.count());
    }
  }

 private:
  std::size_t chunk() const { return elements_in(kChunkBytes); }
  Range chunk_range(int owner, std::size_t round) const {
    const std::size_t begin = std::min(slices_.count(owner), round * chunk());
    const std::size_t end = std::min(slices_.count(owner), begin + chunk());
    return {slices_.first(owner) + begin, slices_.first(owner) + end};
  }
};

class DirectSchedule : public SlicesSchedule {
 public:
  DirectSchedule(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers)
      : SlicesSchedule(rounds, std::move(slices)), buffers_(std::move(buffers)) {}

  std::size_t rounds() const override { return 1; }
  void after(std::size_t) override {}

 protected:
  std::byte* at(int rank, std::size_t element) const {
    return buffers_[static_cast<std::size_t>(rank)] + slices_.bytes(element);
  }

  std::vector<std::byte*> buffers_;
};

/// Each rank adds up its part and writes the sums into everybody's data: n bytes read and n written per rank, the
/// least that an all-reduce in place can do.
class DirectAllReduce : public DirectSchedule {
 public:
  using DirectSchedule::DirectSchedule;

  void before(std::size_t) override {
    // All ranks must agree on the parts, so they go by where rank 0's cache lines begin.
    const std::size_t misaligned = reinterpret_cast<uintptr_t>(buffers_[0]) % kCacheLine;
    const std::size_t phase = elements_in((kCacheLine - misaligned) % kCacheLine);
    const Range part = part_of(slices_.count(), rank(), size(), elements_in(kCacheLine), phase);
    targets_.clear();
    for (int r = 0; r < size(); ++r) targets_.push_back(at(r, part.begin));
    sources_.assign(targets_.begin(), targets_.end());
    sum(part.count());
  }
};

class DirectReduceScatter : public DirectSchedule {
 public:
  using DirectSchedule::DirectSchedule;

  void before(std::size_t) override {
    if (slices_.count(rank()) == 0) return;
    sources_.clear();
    for (int r = 0; r < size(); ++r) sources_.push_back(at(r, slices_.first(rank())));
    targets_.assign(1, at(rank(), slices_.first(rank())));
    sum(slices_.count(rank()));
  }
};

class DirectAllGather : public DirectSchedule {
 public:
  using DirectSchedule::DirectSchedule;

  void before(std::size_t) override {
    // Beginning with the next rank, so that not all ranks read from the same one at a time.
    for (int i = 1; i < size(); ++i) {
      const int r = (rank() + i) % size();
      copy(at(rank(), slices_.first(r)), at(r, slices_.first(r)), slices_.count(r));
    }
  }
};

}  // namespace

std::unique_ptr<Schedule> staged_all_reduce(Rounds& rounds, Slices slices) {
  const bool is_small = slices.bytes(slices.count()) <= kChunkBytes / static_cast<std::size_t>(rounds.size());
  if (is_small || rounds.size() <= kMaxRanksAddingEverything) {
    return std::make_unique<AddEverything>(rounds, std::move(slices));
  }
  return std::make_unique<AddInParts>(rounds, std::move(slices));
}

std::unique_ptr<Schedule> staged_reduce_scatter(Rounds& rounds, Slices slices) {
  return std::make_unique<StagedReduceScatter>(rounds, std::move(slices));
}

std::unique_ptr<Schedule> staged_all_gather(Rounds& rounds, Slices slices) {
  return std::make_unique<StagedAllGather>(rounds, std::move(slices));
}

std::unique_ptr<Schedule> direct_all_reduce(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers) {
  return std::make_unique<DirectAllReduce>(rounds, std::move(slices), std::move(buffers));
}

std::unique_ptr<Schedule> direct_reduce_scatter(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers) {
  return std::make_unique<DirectReduceScatter>(rounds, std::move(slices), std::move(buffers));
}

std::unique_ptr<Schedule> direct_all_gather(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers) {
  return std::make_unique<DirectAllGather>(rounds, std::move(slices), std::move(buffers));
}

}  // namespace tutti::shm
