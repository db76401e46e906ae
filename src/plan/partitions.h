#pragma once

#include "tutti/plan.h"

namespace tutti {

/// The transfer cut into pieces of at most `bytes`, at cache lines, named "fc1.weight[2/3]".
std::vector<Transfer> cut(const Transfer& transfer, int64_t bytes);

/// Partitions on their way to servers at once, unless somebody says otherwise.
constexpr int kUsuallyUnderWay = 4;
/// As many as the credit allows: enough to overlap pushes and pulls, few enough to keep track of.
int partitions_in_flight(int64_t credit_bytes, int64_t partition_bytes);

/// Makes a push_pull of every transfer, placed on `servers` servers by load: the largest first, each on the server that
/// has the least so far.
void place_on_servers(Plan& plan, int servers);

}  // namespace tutti
