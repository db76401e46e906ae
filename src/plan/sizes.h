#pragma once

#include <vector>

#include "tutti/strategy.h"

namespace tutti {

// Sizes that are worth a search: `…_to_plan` on any cluster, `…_to_try` in a run that sends `bytes` a step, from
// everything in one message to many small ones.

std::vector<StrategyOptions> buckets_to_plan(const StrategyOptions& given);
std::vector<StrategyOptions> buckets_to_try(const StrategyOptions& given, int64_t bytes);

std::vector<StrategyOptions> partitions_to_plan(const StrategyOptions& given);
/// An all-reduce has the links for itself, and what is under way only delays what is urgent.
std::vector<StrategyOptions> partitions_to_try(const StrategyOptions& given, int64_t bytes);
/// Servers work side by side: four partitions are under way.
std::vector<StrategyOptions> pushed_partitions_to_try(const StrategyOptions& given, int64_t bytes);

}  // namespace tutti
