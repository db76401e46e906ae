#pragma once

#include <set>
#include <string>
#include <vector>

namespace tutti {

/// What --hold-out names: rows or runs that are predicted instead of fitted. Each of them has several names (its model,
/// its network, …).
using Names = std::vector<std::string>;

bool is_held_out(const Names& names, const Names& held_out);

/// Throws UsageError that shows what of `held_out` names nothing, and all that is `known`: a slip among several would
/// otherwise be fitted and look as if it had been predicted.
void check_held_out(const Names& held_out, const std::set<std::string>& known);

}  // namespace tutti
