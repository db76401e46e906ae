#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/error.h"

namespace tutti {

enum class DataType : uint8_t { f32, bf16, f16, i64 };

constexpr std::size_t bytes_of(DataType type) { return type == DataType::i64 ? 8 : type == DataType::f32 ? 4 : 2; }

/// `count` elements of one type in memory that somebody else owns.
struct Span {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;

  std::size_t bytes() const { return count * bytes_of(type); }
};

/// A peer has died, or the group was aborted: nothing more will be communicated.
class CommFailed : public Error {
 public:
  using Error::Error;
};

/// An operation under way. Destroying a Work that was not waited for leaves the operation under way.
class Work {
 public:
  virtual ~Work() = default;
  /// Returns once the operation is complete on this rank; throws CommFailed if it never will be.
  virtual void wait() = 0;
};

/// What a rank waits for.
struct Awaited {
  std::string call = {};        // "all_reduce of 1000 f32"; "": nothing
  std::vector<int> ranks = {};  // that have not come
  double seconds = 0;           // since anything has moved
};

/// A fixed group of ranks that run collectives together.
/// Every rank issues the same collectives in the same order; a difference that can be seen (operation, type, length)
/// throws on every rank and names the rank. A call returns at once; its memory belongs to the communicator until
/// the returned Work completes. One calling thread at a time, except abort().
/// Sums are made in rank order, 16-bit floats in float32 and rounded once: a result depends neither on how the
/// data was sliced nor on timing.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "shm": for messages and records.
  virtual const char* name() const = 0;

  virtual std::unique_ptr<Work> all_reduce_sum(Span inout) = 0;

  /// In place: rank r ends with the sum in its slice, which starts after the slices of the ranks before it. The
  /// rest of `inout` is unspecified afterwards. `counts` has size() entries, equal on all ranks, some maybe zero.
  virtual std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) = 0;

  /// In place: rank r brings its slice, every rank ends with all of them. `counts` as in reduce_scatter_sum.
  virtual std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) = 0;

  virtual std::unique_ptr<Work> broadcast(Span inout, int root) = 0;
  virtual std::unique_ptr<Work> barrier() = 0;

  /// Messages of one (sender, receiver, tag) arrive in the order sent; a receive must name the length that was sent.
  /// Any number may be under way in either direction, in any order of waiting.
  virtual std::unique_ptr<Work> send(Span data, int to, int tag) = 0;
  virtual std::unique_ptr<Work> receive(Span data, int from, int tag) = 0;

  /// Zeroed memory in which collectives need no staging copies, 64-byte aligned, valid as long as the communicator.
  /// A collective itself: every rank asks for the same size.
  virtual void* allocate(std::size_t bytes) = 0;

  /// The CUDA stream on which collectives work on a GPU's memory, after what was queued there before; allocate() then
  /// gives such memory. Null: host memory only.
  virtual void* device_stream() const { return nullptr; }

  /// The same ranks with a device_stream() of their own, on which collectives can also be recorded in a CUDA graph. A
  /// collective, the first time. Null where collectives need the host; owned by this.
  virtual Communicator* recordable() { return nullptr; }
  /// Completes when the work queued on this CUDA stream so far has run, collectives among it: waiting notices dead
  /// peers and time-outs as it does for a collective. Null where device_stream() is.
  virtual std::unique_ptr<Work> queued_on(void* /*stream*/) { return nullptr; }

  /// What this rank waits for at this moment, once that has lasted a while: for those who look in from outside. Any
  /// thread.
  virtual Awaited awaited() { return {}; }

  /// How many ranks each node has, where collectives are made inside nodes first; empty where all ranks are alike.
  virtual std::vector<int> node_ranks() const { return {}; }

  /// Makes pending and later waits on every rank throw CommFailed with this rank and `reason`. Any thread; safe to
  /// repeat.
  virtual void abort(const std::string& reason) noexcept = 0;
};

/// `size` split into `parts` as evenly as possible, the longer ones first: what all_reduce and its halves agree on.
std::vector<std::size_t> even_split(std::size_t size, int parts);

}  // namespace tutti
