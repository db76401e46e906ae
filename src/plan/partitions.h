#pragma once

#include "plan/plan.h"

namespace tutti {

/// The transfer cut into pieces of at most `bytes`, at cache lines, named "fc1.weight[2/3]".
std::vector<Transfer> cut(const Transfer& transfer, int64_t bytes);

/// Makes a push_pull of every transfer, placed on `servers` servers by load: the largest first, each on the server that
/// has the least so far.
void place_on_servers(Plan& plan, int servers);

}  // namespace tutti
