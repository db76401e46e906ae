#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "data/random.h"

namespace tutti {

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return mix_bits(hash);
}

std::vector<bool> hold_out(const std::vector<int32_t>& labels, const std::vector<uint64_t>& hashes, double fraction) {
  std::map<int32_t, std::vector<uint64_t>> by_class;
  for (size_t i = 0; i < labels.size(); ++i) by_class[labels[i]].push_back(hashes[i]);
  std::map<int32_t, uint64_t> first_to_train;  // hashes below it are held out
  for (auto& [label, sorted] : by_class) {
    std::sort(sorted.begin(), sorted.end());
    const auto count = static_cast<size_t>(std::llround(fraction * static_cast<double>(sorted.size())));
    first_to_train[label] = sorted[std::min(count, sorted.size() - 1)];  // one at least is trained on
  }
  std::vector<bool> is_held_out;
  is_held_out.reserve(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) is_held_out.push_back(hashes[i] < first_to_train[labels[i]]);
  return is_held_out;
}

}  // namespace tutti
