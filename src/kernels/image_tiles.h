#pragma once

// What kernels on channels-last images have in common: how threads share them, and sums over each channel. For kernels
// alone.
//
// Words used below. A *pack* is as many neighbouring channels of a row as a thread moves at once. Blocks stand in a
// grid of *slices* times *bands*: those of a slice work on the same few packs, 128 bytes of a row, and all bands go
// through the rows together, so that what is read at any time lies close together.
//
// Kernels that add up go through the rows from the last one to the first, those that go over the elements afterwards
// from the first to the last: what was read last is still in the second-level cache.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/images.h"

namespace tutti {

constexpr int kImageThreads = 512;
constexpr int kWarp = 32;
constexpr int kWarps = kImageThreads / kWarp;
constexpr int kPackedChannels = 8;
constexpr int kMostLogLanes = 5;
constexpr int kMostColumns = 128;  // numbers that a block adds up: two for each channel of its slice
constexpr int kMostAdders = 16;    // of bands' sums, for each column

constexpr int64_t kLeastRowsPerThread = 4;  // to be added up: more bands than that leaves mean more to add up of them

/// How a tensor is shared among blocks and threads.
struct Tiling {
  int64_t rows;
  int channels;
  int packs;      // in a row
  int log_lanes;  // of threads beside each other on a row
};

template <int V>
Tiling tiling_of(const ImageShape& shape) {
  Tiling tiling{shape.rows, static_cast<int>(shape.channels), static_cast<int>(shape.channels / V), V > 1 ? 0 : 1};
  const int most = V > 1 ? 3 : kMostLogLanes;
  while (tiling.log_lanes < most && (1 << tiling.log_lanes) < tiling.packs) ++tiling.log_lanes;
  return tiling;
}

inline int slices_of(const Tiling& tiling) { return (tiling.packs + (1 << tiling.log_lanes) - 1) >> tiling.log_lanes; }

inline dim3 grid_of(const Tiling& tiling, int64_t least_rows_per_thread, int most_blocks) {
  const int slices = slices_of(tiling);
  const int64_t rows_per_band = (int64_t{kImageThreads} >> tiling.log_lanes) * least_rows_per_thread;
  const int64_t useful = (tiling.rows + rows_per_band - 1) / rows_per_band;
  const int64_t bands = std::max<int64_t>(1, std::min<int64_t>(useful, most_blocks / slices));
  return {static_cast<unsigned>(slices), static_cast<unsigned>(bands)};
}

/// Where a thread works.
struct Site {
  int lane, pack;
  int64_t row, row_step, rows;  // no rows at all for a thread beyond the last pack

  __device__ explicit Site(const Tiling& tiling) {
    const int lanes = 1 << tiling.log_lanes, row_lanes = kImageThreads >> tiling.log_lanes;
    lane = static_cast<int>(threadIdx.x) & (lanes - 1);
    pack = static_cast<int>(blockIdx.x) * lanes + lane;
    row = int64_t{blockIdx.y} * row_lanes + (threadIdx.x >> tiling.log_lanes);
    row_step = int64_t{gridDim.y} * row_lanes;
    rows = pack < tiling.packs ? tiling.rows : 0;
    if (pack >= tiling.packs) pack = 0;
  }
};

/// use(row, load(row)) for each of this thread's rows, with several loads under way: `kLoads` bfloat16 packs.
template <typename T, int kLoads, bool kFromEnd, typename Load, typename Use>
__device__ void for_each_row(const Site& site, const Load& load, const Use& use) {
  constexpr int kAtOnce = kLoads * 2 / static_cast<int>(sizeof(T));
  const auto place = [&](int64_t row) { return kFromEnd ? site.rows - 1 - row : row; };
  int64_t row = site.row;
  for (; row + (kAtOnce - 1) * site.row_step < site.rows; row += kAtOnce * site.row_step) {
    decltype(load(int64_t{})) loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) loaded[i] = load(place(row + i * site.row_step));
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) use(place(row + i * site.row_step), loaded[i]);
  }
  if (row >= site.rows) return;
  decltype(load(int64_t{})) loaded[kAtOnce];
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
    if (row + i * site.row_step < site.rows) loaded[i] = load(place(row + i * site.row_step));
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
    if (row + i * site.row_step < site.rows) use(place(row + i * site.row_step), loaded[i]);
}

/// A number of each of this thread's channels. Parameters may lie anywhere, so these are moved one by one.
template <int V>
__device__ void read_channels(const float* from, const Site& site, float (&to)[V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) to[i] = from[site.pack * V + i];
}

/// Sums over all rows, of which each thread brings those over its own: finish(channel, first, second) is called once
/// for each channel, by the block of a slice that comes last. The order of additions is always the same.
template <int V, typename Finish>
__device__ void add_up(float (&first)[V], float (&second)[V], const Tiling& tiling, const ChannelScratch& scratch,
                       const Finish& finish) {
  __shared__ float of_warps[kWarps][kMostColumns];
  __shared__ double of_adders[kMostAdders * kMostColumns];
  __shared__ bool is_last;
  const int thread = static_cast<int>(threadIdx.x), lanes = 1 << tiling.log_lanes;
  const int half = V * lanes, columns = 2 * half;
  for (int step = lanes; step < kWarp; step *= 2) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      first[i] += __shfl_xor_sync(0xffffffffU, first[i], step);
      second[i] += __shfl_xor_sync(0xffffffffU, second[i], step);
    }
  }
  const int warp = thread / kWarp, lane = thread % kWarp;
  if (lane < lanes) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      of_warps[warp][lane * V + i] = first[i];
      of_warps[warp][half + lane * V + i] = second[i];
    }
  }
  __syncthreads();
  float* const sums = scratch.sums + int64_t{blockIdx.x} * gridDim.y * columns;
  if (thread < columns) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) sum += of_warps[i][thread];
    sums[blockIdx.y * columns + thread] = sum;
    __threadfence();
  }
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(scratch.counters + blockIdx.x, 1U) + 1 == gridDim.y;
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  const int quads = columns / 4, adder = thread / quads, quad = thread % quads;
  const int adders = min(kImageThreads / quads, kMostAdders);
  if (adder < adders) {
    double total[4] = {};
    const float4* const from = reinterpret_cast<const float4*>(sums) + quad;
#pragma unroll 8
    for (int band = adder; band < static_cast<int>(gridDim.y); band += adders) {
      const float4 sum = __ldcg(from + band * quads);
      total[0] += sum.x, total[1] += sum.y, total[2] += sum.z, total[3] += sum.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) of_adders[adder * columns + quad * 4 + i] = total[i];
  }
  __syncthreads();
  if (thread < half) {
    double totals[2] = {};
    for (int i = 0; i < adders; ++i) {
      totals[0] += of_adders[i * columns + thread];
      totals[1] += of_adders[i * columns + half + thread];
    }
    const int channel = static_cast<int>(blockIdx.x) * half + thread;
    if (channel < tiling.channels) finish(channel, totals[0], totals[1]);
  }
  if (thread == 0) scratch.counters[blockIdx.x] = 0;
}

inline bool is_packed(const ImageShape& shape) { return shape.channels % kPackedChannels == 0; }

}  // namespace tutti
