#include "plan/sizes.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kSmallest = 64 << 10;

/// The options with `change(options, size)` for everything, half of it, a quarter, …
template <typename Change>
std::vector<StrategyOptions> halved(const StrategyOptions& given, int64_t bytes, Change change) {
  std::vector<StrategyOptions> list;
  for (int64_t parts = 1; parts <= 32; parts *= 2) {
    const int64_t size = std::max(kSmallest, bytes / parts);
    list.push_back(given);
    change(list.back(), size);
    if (size == kSmallest) break;
  }
  return list;
}

}  // namespace

std::vector<StrategyOptions> buckets_to_plan(const StrategyOptions& given) {
  std::vector<StrategyOptions> list;
  for (const int64_t bucket : {1, 4, 10, 25, 50, 100, 200}) {
    list.push_back(given);
    list.back().bucket_bytes = bucket * kMiB;
    list.back().first_bucket_bytes = std::min(given.first_bucket_bytes, bucket * kMiB);
  }
  return list;
}

std::vector<StrategyOptions> buckets_to_try(const StrategyOptions& given, int64_t bytes) {
  return halved(given, bytes, [](StrategyOptions& options, int64_t size) {
    options.bucket_bytes = size;
    options.first_bucket_bytes = std::max(kSmallest, size / 4);
  });
}

std::vector<StrategyOptions> partitions_to_plan(const StrategyOptions& given) {
  std::vector<StrategyOptions> list;
  for (const int64_t partition : {2, 4, 16, 64})
    for (const int64_t credits : {4, 16, 64}) {
      list.push_back(given);
      list.back().partition_bytes = partition * kMiB;
      list.back().credit_bytes = credits * partition * kMiB;
    }
  return list;
}

std::vector<StrategyOptions> partitions_to_try(const StrategyOptions& given, int64_t bytes) {
  return halved(given, bytes,
                [](StrategyOptions& options, int64_t size) { options.partition_bytes = options.credit_bytes = size; });
}

std::vector<StrategyOptions> pushed_partitions_to_try(const StrategyOptions& given, int64_t bytes) {
  return halved(given, bytes, [](StrategyOptions& options, int64_t size) {
    options.partition_bytes = size;
    options.credit_bytes = 4 * size;
  });
}

}  // namespace tutti
