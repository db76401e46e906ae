#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti {

/// FNV-1a, mixed: the same on every machine, unlike std::hash.
uint64_t hash_name(std::string_view name);

/// Part of the samples that is held out where nobody says how many.
constexpr double kUsualHeldOut = 0.2;

/// Which samples are held out as the test: of each class, those with the smallest hashes. So the order of files does
/// not matter, and a new file changes the side of one other at most. Equal hashes are on one side.
std::vector<bool> hold_out(const std::vector<int32_t>& labels, const std::vector<uint64_t>& hashes, double fraction);

}  // namespace tutti
