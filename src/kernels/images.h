#pragma once

#include <algorithm>
#include <cstdint>

namespace tutti {

/// Images that lie channels-last in device memory: a row for each pixel of each image, channels side by side, from a
/// multiple of 16 bytes on. Float or bfloat16.
struct ImageShape {
  int64_t rows = 0;
  int64_t channels = 0;
  bool is_bf16 = false;
};

/// Memory for kernels that add up over each channel. A call uses it until its kernels have run.
struct ChannelScratch {
  float* sums = nullptr;         // channel_sums() of them
  unsigned* counters = nullptr;  // kChannelCounters of them, zeroes, which are zeroes again afterwards
};
constexpr int64_t kChannelCounters = 1024;
constexpr int64_t kMostImageChannels = 32000;

// Blocks that run at a time on an H100 or H200, whose 132 processors take two each. On every other GPU too: the order
// of additions, and so the bits of the result, depend on it.
constexpr int kMostBlocks = 264;

inline int64_t channel_sums(int64_t channels) { return 128 * std::max<int64_t>(kMostBlocks, channels / 32 + 1); }

}  // namespace tutti
