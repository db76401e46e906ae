#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/shm/rounds.h"
#include "tutti/communicator.h"

namespace tutti::shm {

/// What a rank does in the rounds of one collective.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual std::size_t rounds() const = 0;
  /// Puts this rank's share of the round before the others.
  virtual void before(std::size_t round) = 0;
  /// All ranks have arrived: uses what they put there.
  virtual void after(std::size_t round) = 0;
};

/// The data of one collective. Slice r, which belongs to rank r, has the elements [begin[r], begin[r + 1]).
struct Slices {
  std::byte* data = nullptr;
  DataType type = DataType::f32;
  std::vector<std::size_t> begin;

  std::size_t count() const { return begin.back(); }
  std::size_t count(int rank) const { return begin[static_cast<std::size_t>(rank) + 1] - first(rank); }
  std::size_t first(int rank) const { return begin[static_cast<std::size_t>(rank)]; }
  std::size_t bytes(std::size_t elements) const { return elements * bytes_of(type); }
  std::byte* at(std::size_t element) const { return data + bytes(element); }
};

// Through the stages, in as many rounds as it takes; for data anywhere. `rounds` must outlive the schedule.
std::unique_ptr<Schedule> staged_all_reduce(Rounds& rounds, Slices slices);
std::unique_ptr<Schedule> staged_reduce_scatter(Rounds& rounds, Slices slices);
std::unique_ptr<Schedule> staged_all_gather(Rounds& rounds, Slices slices);

// Straight from and to the ranks' own data, which lies at `buffers` in memory from allocate(). One round, whose
// arrival says "done"; only to be used when all ranks are known to have begun.
std::unique_ptr<Schedule> direct_all_reduce(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers);
std::unique_ptr<Schedule> direct_reduce_scatter(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers);
std::unique_ptr<Schedule> direct_all_gather(Rounds& rounds, Slices slices, std::vector<std::byte*> buffers);

}  // namespace tutti::shm
