#include "kernels/batch_norm.h"

#include "kernels/batch_norm_math.h"
#include "kernels/image_tiles.h"
#include "kernels/launch.h"
#include "kernels/packs.h"

namespace tutti {
namespace {

template <typename T, int V>
__global__ void __launch_bounds__(kImageThreads, 1) norm_statistics(NormForward call, Tiling tiling) {
  let_next_kernel_start();
  using Values = Pack<T, V>;
  const Site site(tiling);
  const Values* const x = static_cast<const Values*>(call.x);
  float shift[V], sum[V] = {}, squares[V] = {};
  x[site.pack].unpack(shift);
  for_each_row<T, 8, true>(
      site, [&](int64_t row) { return x[row * tiling.packs + site.pack]; },
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
__global__ void __launch_bounds__(kImageThreads, 2) norm_apply(NormForward call, Tiling tiling) {
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
  for_each_row<T, kHasResidual ? 2 : 4, false>(
      site,
      [&](int64_t row) {
        const int64_t i = row * tiling.packs + site.pack;
        Loaded loaded;
        loaded.x = x[i];
        if constexpr (kHasResidual) loaded.residual = residual[i];
        return loaded;
      },
      [&](int64_t row, const Loaded& loaded) {
        const int64_t at = row * tiling.packs + site.pack;
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
  int packs;
  int64_t other_packs;

  __device__ GradientReader(const NormBackward& call, const Tiling& tiling)
      : x(static_cast<const Values*>(call.x)),
        one(static_cast<const Values*>(call.y_gradient)),
        other(static_cast<const Values*>(call.y_gradient2)),
        mask(call.mask),
        packs(tiling.packs),
        other_packs(call.y_gradient2_row / V) {}

  template <bool kHasMask>
  __device__ Loaded load(int64_t row, int pack) const {
    const int64_t i = row * packs + pack;
    Loaded loaded;
    loaded.x = x[i];
    loaded.one = one[i];
    if constexpr (kIsForked) loaded.other = other[row * other_packs + pack];
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
__global__ void __launch_bounds__(kImageThreads, 1) norm_gradient_sums(NormBackward call, Tiling tiling) {
  let_next_kernel_start();
  using Reader = GradientReader<T, V, kIsForked>;
  using Values = typename Reader::Values;
  const Site site(tiling);
  const Reader reader(call, tiling);
  const Normalizer<V> normalize(call.mean, call.inverse_deviation, call.weight, call.bias, site);
  Values* const passed = static_cast<Values*>(call.residual_gradient);
  float sum[V] = {}, products[V] = {};
  for_each_row<T, kIsForked ? 3 : 4, true>(
      site, [&](int64_t row) { return reader.template load<kRelu == NormRelu::from_mask>(row, site.pack); },
      [&](int64_t row, const typename Reader::Loaded& loaded) {
        const int64_t at = row * tiling.packs + site.pack;
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
__global__ void __launch_bounds__(kImageThreads, 1) norm_gradient(NormBackward call, Tiling tiling) {
  wait_for_kernel_before();
  using Reader = GradientReader<T, V, kIsForked>;
  using Values = typename Reader::Values;
  const Site site(tiling);
  const Reader reader(call, tiling);
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
  for_each_row<T, kIsForked ? 3 : 4, false>(
      site, [&](int64_t row) { return reader.template load<false>(row, site.pack); },
      [&](int64_t row, const typename Reader::Loaded& loaded) {
        const int64_t at = row * tiling.packs + site.pack;
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
      <<<grid_of(tiling, kLeastRowsPerThread, kMostBlocks / 2), kImageThreads, 0, stream>>>(call, tiling);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  const dim3 grid = grid_of(tiling, 2, kMostBlocks);
  return launch_behind(call.residual != nullptr ? norm_apply<T, V, true> : norm_apply<T, V, false>, grid, kImageThreads,
                       stream, call, tiling);
}

template <typename T, int V, NormRelu kRelu, bool kIsForked>
cudaError_t backward(const NormBackward& call, cudaStream_t stream) {
  const Tiling tiling = tiling_of<V>(call.shape);
  norm_gradient_sums<T, V, kRelu, kIsForked>
      <<<grid_of(tiling, kLeastRowsPerThread, kMostBlocks / 2), kImageThreads, 0, stream>>>(call, tiling);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  const dim3 grid = grid_of(tiling, 2, kMostBlocks / 2);
  if constexpr (kRelu == NormRelu::from_mask) {
    // The first kernel has already left what passed relu, in one tensor.
    NormBackward rest = call;
    rest.y_gradient = call.residual_gradient;
    return launch_behind(norm_gradient<T, V, NormRelu::none, false>, grid, kImageThreads, stream, rest, tiling);
  } else {
    return launch_behind(norm_gradient<T, V, kRelu, kIsForked>, grid, kImageThreads, stream, call, tiling);
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

bool is_possible(const ImageShape& shape) {
  return shape.rows > 1 && shape.channels > 0 && shape.channels <= kMostImageChannels;
}

}  // namespace

int64_t norm_mask_bytes(const ImageShape& shape) {
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
