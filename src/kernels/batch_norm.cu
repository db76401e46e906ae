#include "kernels/batch_norm.h"

#include "kernels/batch_norm_math.h"
#include "kernels/launch.h"
#include "kernels/packs.h"

// Words used below. A *pack* is as many neighbouring channels of a row as a thread moves at once. Blocks stand in a
// grid of *slices* times *bands*: those of a slice work on the same few packs, 128 bytes of a row, and all bands go
// through the rows together, so that what is read at any time lies close together.
//
// Kernels that add up go through the rows from the last one to the first, those that go over the elements afterwards
// from the first to the last: what was read last is still in the second-level cache.

namespace tutti {
namespace {

constexpr int kNormThreads = 512;
constexpr int kWarp = 32;
constexpr int kWarps = kNormThreads / kWarp;
constexpr int kPackedChannels = 8;
constexpr int kMostLogLanes = 5;
constexpr int kMostColumns = 128;  // numbers that a block adds up: two for each channel of its slice
constexpr int kMostAdders = 16;    // of bands' sums, for each column

// Blocks that run at a time on an H100 or H200, whose 132 processors take two each. On every other GPU too: the order
// of additions, and so the bits of the result, depend on it.
constexpr int kMostBlocks = 264;
constexpr int64_t kLeastRowsPerThread = 4;  // to be added up: more bands than that leaves mean more to add up of them

/// How a tensor is shared among blocks and threads.
struct Tiling {
  int64_t rows;
  int channels;
  int packs;      // in a row
  int log_lanes;  // of threads beside each other on a row
};

template <int V>
Tiling tiling_of(const NormShape& shape) {
  Tiling tiling{shape.rows, static_cast<int>(shape.channels), static_cast<int>(shape.channels / V), V > 1 ? 0 : 1};
  const int most = V > 1 ? 3 : kMostLogLanes;
  while (tiling.log_lanes < most && (1 << tiling.log_lanes) < tiling.packs) ++tiling.log_lanes;
  return tiling;
}

int slices_of(const Tiling& tiling) { return (tiling.packs + (1 << tiling.log_lanes) - 1) >> tiling.log_lanes; }

dim3 grid_of(const Tiling& tiling, int64_t least_rows_per_thread, int most_blocks) {
  const int slices = slices_of(tiling);
  const int64_t rows_per_band = (int64_t{kNormThreads} >> tiling.log_lanes) * least_rows_per_thread;
  const int64_t useful = (tiling.rows + rows_per_band - 1) / rows_per_band;
  const int64_t bands = std::max<int64_t>(1, std::min<int64_t>(useful, most_blocks / slices));
  return {static_cast<unsigned>(slices), static_cast<unsigned>(bands)};
}

/// Where a thread works.
struct Site {
  int lane, pack;
  int64_t row, row_step, rows;  // no rows at all for a thread beyond the last pack

  __device__ explicit Site(const Tiling& tiling) {
    const int lanes = 1 << tiling.log_lanes, row_lanes = kNormThreads >> tiling.log_lanes;
    lane = static_cast<int>(threadIdx.x) & (lanes - 1);
    pack = static_cast<int>(blockIdx.x) * lanes + lane;
    row = int64_t{blockIdx.y} * row_lanes + (threadIdx.x >> tiling.log_lanes);
    row_step = int64_t{gridDim.y} * row_lanes;
    rows = pack < tiling.packs ? tiling.rows : 0;
    if (pack >= tiling.packs) pack = 0;
  }
};

/// use(i, load(i)) for each of this thread's rows' packs i, with several loads under way: `kLoads` bfloat16 packs.
template <typename T, int kLoads, bool kFromEnd, typename Load, typename Use>
__device__ void for_each_pack(const Site& site, int packs, const Load& load, const Use& use) {
  constexpr int kAtOnce = kLoads * 2 / static_cast<int>(sizeof(T));
  const auto place = [&](int64_t row) { return (kFromEnd ? site.rows - 1 - row : row) * packs + site.pack; };
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
__device__ void add_up(float (&first)[V], float (&second)[V], const Tiling& tiling, const NormScratch& scratch,
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
  const int adders = min(kNormThreads / quads, kMostAdders);
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

template <typename T, int V>
__global__ void __launch_bounds__(kNormThreads, 1) norm_statistics(NormForward call, Tiling tiling) {
  let_next_kernel_start();
  using Values = Pack<T, V>;
  const Site site(tiling);
  const Values* const x = static_cast<const Values*>(call.x);
  float shift[V], sum[V] = {}, squares[V] = {};
  x[site.pack].unpack(shift);
  for_each_pack<T, 8, true>(
      site, tiling.packs, [&](int64_t i) { return x[i]; },
      [&](int64_t, const Values& pack) {
        float values[V];
        pack.unpack(values);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float value = values[i] - shift[i];
          sum[i] += value;
          squares[i] = fmaf(value, value, squares[i]);
        }
      });
  add_up<V>(sum, squares, tiling, call.scratch, [&](int channel, double first, double second) {
    const double count = static_cast<double>(tiling.rows);
    const Moments moments =
        moments_of(first, second, static_cast<double>(static_cast<const T*>(call.x)[channel]), count);
    call.mean[channel] = static_cast<float>(moments.mean);
    call.inverse_deviation[channel] = static_cast<float>(1 / sqrt(moments.variance + call.epsilon));
    if (call.running_mean == nullptr) return;
    call.running_mean[channel] = running_average(call.running_mean[channel], moments.mean, call.momentum);
    call.running_variance[channel] =
        running_average(call.running_variance[channel], moments.variance * count / (count - 1), call.momentum);
  });
}

/// What normalizes this thread's channels.
template <int V>
struct Normalizer {
  float mean[V], scale[V], bias[V];

  __device__ Normalizer(const float* means, const float* inverse_deviations, const float* weights, const float* biases,
                        const Site& site) {
    read_channels<V>(means, site, mean);
    read_channels<V>(inverse_deviations, site, scale);
    read_channels<V>(biases, site, bias);
    float weight[V];
    read_channels<V>(weights, site, weight);
#pragma unroll
    for (int i = 0; i < V; ++i) scale[i] *= weight[i];
  }
  __device__ float operator()(int i, float x) const { return NormChannel{mean[i], scale[i], bias[i]}(x); }
};

template <typename T, int V, bool kHasResidual>
__global__ void __launch_bounds__(kNormThreads, 2) norm_apply(NormForward call, Tiling tiling) {
  wait_for_kernel_before();
  using Values = Pack<T, V>;
  struct Loaded {
    Values x, residual;
  };
  const Site site(tiling);
  const Normalizer<V> normalize(call.mean, call.inverse_deviation, call.weight, call.bias, site);
  const Values* const x = static_cast<const Values*>(call.x);
  const Values* const residual = static_cast<const Values*>(call.residual);
  Values* const y = static_cast<Values*>(call.y);
  uint8_t* const mask = call.mask;
  const bool has_relu = call.has_relu;
  for_each_pack<T, kHasResidual ? 2 : 4, false>(
      site, tiling.packs,
      [&](int64_t i) {
        Loaded loaded;
        loaded.x = x[i];
        if constexpr (kHasResidual) loaded.residual = residual[i];
        return loaded;
      },
      [&](int64_t at, const Loaded& loaded) {
        float values[V], added[V] = {};
        loaded.x.unpack(values);
        if constexpr (kHasResidual) loaded.residual.unpack(added);
        unsigned passes = 0;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          values[i] = normalize(i, values[i]);
          if constexpr (kHasResidual) values[i] += added[i];
          if (!has_relu) continue;
          const bool pass = relu_passes(values[i]);
          passes |= static_cast<unsigned>(pass) << i;
          values[i] = pass ? values[i] : 0.0F;
        }
        y[at] = Values::of(values);
        if constexpr (kHasResidual) {
          if (mask != nullptr) mask[at] = static_cast<uint8_t>(passes);
        }
      });
}

/// Reads the gradient behind relu, which may have come in two parts.
template <typename T, int V, bool kIsForked>
struct GradientReader {
  using Values = Pack<T, V>;
  struct Loaded {
    Values x, one, other;
    uint8_t mask;
  };
  const Values *x, *one, *other;
  const uint8_t* mask;

  __device__ explicit GradientReader(const NormBackward& call)
      : x(static_cast<const Values*>(call.x)),
        one(static_cast<const Values*>(call.y_gradient)),
        other(static_cast<const Values*>(call.y_gradient2)),
        mask(call.mask) {}

  template <bool kHasMask>
  __device__ Loaded load(int64_t i) const {
    Loaded loaded;
    loaded.x = x[i];
    loaded.one = one[i];
    if constexpr (kIsForked) loaded.other = other[i];
    if constexpr (kHasMask) loaded.mask = mask[i];
    return loaded;
  }
  __device__ static void unpack(const Loaded& loaded, float (&values)[V], float (&gradient)[V]) {
    loaded.x.unpack(values);
    loaded.one.unpack(gradient);
    if constexpr (kIsForked) {
      float more[V];
      loaded.other.unpack(more);
#pragma unroll
      for (int i = 0; i < V; ++i) gradient[i] += more[i];
    }
  }
};

template <typename T, int V, NormRelu kRelu, bool kIsForked>
__global__ void __launch_bounds__(kNormThreads, 1) norm_gradient_sums(NormBackward call, Tiling tiling) {
  let_next_kernel_start();
  using Reader = GradientReader<T, V, kIsForked>;
  using Values = typename Reader::Values;
  const Site site(tiling);
  const Reader reader(call);
  const Normalizer<V> normalize(call.mean, call.inverse_deviation, call.weight, call.bias, site);
  Values* const passed = static_cast<Values*>(call.residual_gradient);
  float sum[V] = {}, products[V] = {};
  for_each_pack<T, kIsForked ? 3 : 4, true>(
      site, tiling.packs, [&](int64_t i) { return reader.template load<kRelu == NormRelu::from_mask>(i); },
      [&](int64_t at, const typename Reader::Loaded& loaded) {
        float values[V], gradient[V];
        Reader::unpack(loaded, values, gradient);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          if constexpr (kRelu == NormRelu::of_value) {
            if (!relu_passes(normalize(i, values[i]))) gradient[i] = 0;
          }
          if constexpr (kRelu == NormRelu::from_mask) {
            if ((loaded.mask >> i & 1) == 0) gradient[i] = 0;
          }
          sum[i] += gradient[i];
          products[i] = fmaf(gradient[i], values[i] - normalize.mean[i], products[i]);
        }
        if constexpr (kRelu == NormRelu::from_mask) passed[at] = Values::of(gradient);
      });
  add_up<V>(sum, products, tiling, call.scratch, [&](int channel, double first, double second) {
    call.bias_gradient[channel] = static_cast<float>(first);
    call.weight_gradient[channel] = static_cast<float>(second * static_cast<double>(call.inverse_deviation[channel]));
  });
}

template <typename T, int V, NormRelu kRelu, bool kIsForked>
__global__ void __launch_bounds__(kNormThreads, 1) norm_gradient(NormBackward call, Tiling tiling) {
  wait_for_kernel_before();
  using Reader = GradientReader<T, V, kIsForked>;
  using Values = typename Reader::Values;
  const Site site(tiling);
  const Reader reader(call);
  NormGradient gradient_of[V];
  float scale[V], bias[V];
  {
    float mean[V], weight[V], sum[V], products[V];
    read_channels<V>(call.mean, site, mean);
    read_channels<V>(call.inverse_deviation, site, scale);
    read_channels<V>(call.weight, site, weight);
    read_channels<V>(call.bias, site, bias);
    read_channels<V>(call.bias_gradient, site, sum);
    read_channels<V>(call.weight_gradient, site, products);
    const float inverse_count = static_cast<float>(1.0 / static_cast<double>(tiling.rows));
#pragma unroll
    for (int i = 0; i < V; ++i) {
      gradient_of[i] = NormGradient(mean[i], scale[i], weight[i], sum[i], products[i], inverse_count);
      scale[i] *= weight[i];
    }
  }
  Values* const to = static_cast<Values*>(call.x_gradient);
  for_each_pack<T, kIsForked ? 3 : 4, false>(
      site, tiling.packs, [&](int64_t i) { return reader.template load<false>(i); },
      [&](int64_t at, const typename Reader::Loaded& loaded) {
        float values[V], gradient[V];
        Reader::unpack(loaded, values, gradient);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          if constexpr (kRelu == NormRelu::of_value) {
            if (!relu_passes(NormChannel{gradient_of[i].mean, scale[i], bias[i]}(values[i]))) gradient[i] = 0;
          }
          gradient[i] = gradient_of[i](gradient[i], values[i]);
        }
        to[at] = Values::of(gradient);
      });
}

template <typename T, int V>
cudaError_t forward(const NormForward& call, cudaStream_t stream) {
  const Tiling tiling = tiling_of<V>(call.shape);
  norm_statistics<T, V>
      <<<grid_of(tiling, kLeastRowsPerThread, kMostBlocks / 2), kNormThreads, 0, stream>>>(call, tiling);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  const dim3 grid = grid_of(tiling, 2, kMostBlocks);
  return launch_behind(call.residual != nullptr ? norm_apply<T, V, true> : norm_apply<T, V, false>, grid, kNormThreads,
                       stream, call, tiling);
}

template <typename T, int V, NormRelu kRelu, bool kIsForked>
cudaError_t backward(const NormBackward& call, cudaStream_t stream) {
  const Tiling tiling = tiling_of<V>(call.shape);
  norm_gradient_sums<T, V, kRelu, kIsForked>
      <<<grid_of(tiling, kLeastRowsPerThread, kMostBlocks / 2), kNormThreads, 0, stream>>>(call, tiling);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  const dim3 grid = grid_of(tiling, 2, kMostBlocks / 2);
  if constexpr (kRelu == NormRelu::from_mask) {
    // The first kernel has already left what passed relu, in one tensor.
    NormBackward rest = call;
    rest.y_gradient = call.residual_gradient;
    return launch_behind(norm_gradient<T, V, NormRelu::none, false>, grid, kNormThreads, stream, rest, tiling);
  } else {
    return launch_behind(norm_gradient<T, V, kRelu, kIsForked>, grid, kNormThreads, stream, call, tiling);
  }
}

template <typename T, int V, NormRelu kRelu>
cudaError_t backward(const NormBackward& call, cudaStream_t stream) {
  return call.y_gradient2 != nullptr ? backward<T, V, kRelu, true>(call, stream)
                                     : backward<T, V, kRelu, false>(call, stream);
}

template <typename T, int V>
cudaError_t backward(const NormBackward& call, cudaStream_t stream) {
  switch (call.relu) {
    case NormRelu::none:
      return backward<T, V, NormRelu::none>(call, stream);
    case NormRelu::of_value:
      return backward<T, V, NormRelu::of_value>(call, stream);
    case NormRelu::from_mask:
      return backward<T, V, NormRelu::from_mask>(call, stream);
  }
  return cudaErrorInvalidValue;
}

bool is_packed(const NormShape& shape) { return shape.channels % kPackedChannels == 0; }

bool is_possible(const NormShape& shape) {
  return shape.rows > 1 && shape.channels > 0 && shape.channels <= kMostNormChannels;
}

template <int V>
int64_t sums_of(const NormShape& shape) {
  const Tiling tiling = tiling_of<V>(shape);
  const int64_t slices = slices_of(tiling);
  return std::max<int64_t>(kMostBlocks, slices) * 2 * V << tiling.log_lanes;
}

}  // namespace

int64_t norm_sums(const NormShape& shape) {
  return is_packed(shape) ? sums_of<kPackedChannels>(shape) : sums_of<1>(shape);
}

int64_t norm_mask_bytes(const NormShape& shape) {
  return shape.rows * (is_packed(shape) ? shape.channels / kPackedChannels : shape.channels);
}

cudaError_t norm_forward_on_device(const NormForward& call, cudaStream_t stream) {
  if (!is_possible(call.shape)) return cudaErrorInvalidValue;
  if (is_packed(call.shape))
    return call.shape.is_bf16 ? forward<__nv_bfloat16, kPackedChannels>(call, stream)
                              : forward<float, kPackedChannels>(call, stream);
  return call.shape.is_bf16 ? forward<__nv_bfloat16, 1>(call, stream) : forward<float, 1>(call, stream);
}

cudaError_t norm_backward_on_device(const NormBackward& call, cudaStream_t stream) {
  if (!is_possible(call.shape)) return cudaErrorInvalidValue;
  if (is_packed(call.shape))
    return call.shape.is_bf16 ? backward<__nv_bfloat16, kPackedChannels>(call, stream)
                              : backward<float, kPackedChannels>(call, stream);
  return call.shape.is_bf16 ? backward<__nv_bfloat16, 1>(call, stream) : backward<float, 1>(call, stream);
}

}  // namespace tutti
