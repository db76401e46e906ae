#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/shm/segment.h"

namespace tutti::shm {

/// The shared memory handed out by allocate(). It follows the segment in the same file; each allocation has one equal
/// part per rank, and every rank maps all parts. A place in it is named by its offset in the file, the same for all
/// ranks.
class Arena {
 public:
  /// `segment` must outlive the arena.
  explicit Arena(Segment& segment);
  ~Arena();
  Arena(const Arena&) = delete;

  /// Takes the memory of this rank's part. All ranks call this in the same order; the parts of the others are usable
  /// once they have returned too. Throws CommFailed if there is not enough memory.
  void* allocate(std::size_t bytes);

  /// Empty if the data does not lie, whole, in this rank's part of an allocation.
  std::optional<uint64_t> offset_of(const void* data, std::size_t bytes) const;
  std::byte* at(uint64_t offset) const;

 private:
  struct Region {
    uint64_t offset;         // in the file
    std::size_t part_bytes;  // of each rank
    std::byte* base;         // where this process sees it
  };

  Segment& segment_;
  uint64_t end_;
  std::vector<Region> regions_;
};

}  // namespace tutti::shm
