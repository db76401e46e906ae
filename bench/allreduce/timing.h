#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace bench {

// What all programs of this benchmark agree on, so that run.py compares like with like.

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The value that rank `rank` brings at element `i` before each check: sums of these are exact in float32.
inline float input_at(int rank, std::size_t i) {
  return static_cast<float>((i % 1021) + static_cast<std::size_t>(rank));
}
inline float sum_at(int ranks, std::size_t i) {
  return static_cast<float>(static_cast<std::size_t>(ranks) * (i % 1021) +
                            static_cast<std::size_t>(ranks * (ranks - 1) / 2));
}

/// So many repetitions take about `budget_s`: at least 3, at most 2000. `one_s` is the time of one.
inline int repetitions(double one_s, double budget_s) {
  return static_cast<int>(std::clamp(budget_s / std::max(one_s, 1e-7), 3.0, 2000.0));
}

/// One line that run.py reads: the time per operation of each batch, of the slowest rank.
inline void print_result(const char* what, int ranks, std::size_t bytes, const std::vector<double>& samples_s) {
  std::printf("{\"what\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"samples_s\": [", what, ranks, bytes);
  for (std::size_t i = 0; i < samples_s.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", samples_s[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace bench
