#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

enum class CallKind : uint8_t { none, all_reduce, reduce_scatter, all_gather, broadcast, barrier, allocate };

/// What one rank calls: the others compare it with what they call.
struct Call {
  static constexpr uint64_t kNotShared = ~uint64_t{0};

  CallKind kind = CallKind::none;
  DataType type = DataType::f32;
  int16_t root = 0;
  uint64_t count = 0;
  uint64_t counts_hash = 0;
  uint64_t offset = kNotShared;  // of the data in the memory file, if it lies there; may differ between ranks

  bool matches(const Call& other) const;
  std::string describe() const;
};

/// For Call::counts_hash.
uint64_t hash_of(const std::vector<std::size_t>& counts);

// What a transport says about arguments that cannot be; `what` names the operation.
void check_rank(const char* what, int rank, int size);
void check_counts(const char* what, Span inout, const std::vector<std::size_t>& counts, int size);

}  // namespace tutti
