#include "comm/call.h"

#include <numeric>

namespace tutti {
namespace {

std::string describe_type(DataType type) {
  return type == DataType::f32 ? "f32" : type == DataType::bf16 ? "bf16" : type == DataType::f16 ? "f16" : "i64";
}

}  // namespace

bool Call::matches(const Call& other) const {
  return kind == other.kind && type == other.type && root == other.root && count == other.count &&
         counts_hash == other.counts_hash;
}

std::string Call::describe() const {
  const std::string data = fmt::format("of {} {}", count, describe_type(type));
  switch (kind) {
    case CallKind::none:
      return "nothing";
    case CallKind::all_reduce:
      return "all_reduce " + data;
    case CallKind::reduce_scatter:
      return fmt::format("reduce_scatter {} in slices #{:x}", data, counts_hash & 0xFFFF);
    case CallKind::all_gather:
      return fmt::format("all_gather {} in slices #{:x}", data, counts_hash & 0xFFFF);
    case CallKind::broadcast:
      return fmt::format("broadcast {} from rank {}", data, root);
    case CallKind::barrier:
      return "barrier";
    case CallKind::allocate:
      return fmt::format("allocate of {} bytes", count);
  }
  return "?";
}

uint64_t hash_of(const std::vector<std::size_t>& counts) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a, by whole numbers
  for (const std::size_t count : counts) hash = (hash ^ count) * 1099511628211ull;
  return hash;
}

void check_rank(const char* what, int rank, int size) {
  if (rank < 0 || rank >= size) throw Error("{}: there is no rank {} among {}.", what, rank, size);
}

void check_counts(const char* what, Span inout, const std::vector<std::size_t>& counts, int size) {
  const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (counts.size() == static_cast<std::size_t>(size) && sum == inout.count) return;
  throw Error("{}: {} slices with {} elements in all do not fit {} ranks and {} elements.", what, counts.size(), sum,
              size, inout.count);
}

}  // namespace tutti
