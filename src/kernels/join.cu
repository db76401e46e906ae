#include "kernels/join.h"

#include "kernels/image_tiles.h"
#include "kernels/packs.h"

namespace tutti {
namespace {

constexpr int V = kPackedChannels;

template <typename T>
__global__ void __launch_bounds__(kImageThreads, 2)
    join_rows(const Pack<T, V>* first, const Pack<T, V>* second, const float* bias, Pack<T, V>* to, int first_packs,
              Tiling tiling) {
  const Site site(tiling);
  const bool is_first = site.pack < first_packs;
  const Pack<T, V>* const from = is_first ? first + site.pack : second + (site.pack - first_packs);
  const int from_packs = is_first ? first_packs : tiling.packs - first_packs;
  float added[V] = {};
  if (!is_first) {
#pragma unroll
    for (int i = 0; i < V; ++i) added[i] = bias[(site.pack - first_packs) * V + i];
  }
  for_each_row<T, 4, false>(
      site, [&](int64_t row) { return from[row * from_packs]; },
      [&](int64_t row, Pack<T, V> pack) {
        if (!is_first) {
          float values[V];
          pack.unpack(values);
#pragma unroll
          for (int i = 0; i < V; ++i) values[i] += added[i];
          pack = Pack<T, V>::of(values);
        }
        to[row * tiling.packs + site.pack] = pack;
      });
}

template <typename T>
__global__ void __launch_bounds__(kImageThreads, 1)
    split_rows(const Pack<T, V>* gradient, Pack<T, V>* second, float* bias_gradient, int first_packs, Tiling tiling,
               ChannelScratch scratch) {
  const Site site(tiling);
  const int packs = first_packs + tiling.packs;
  float sum[V] = {}, unused[V] = {};
  for_each_row<T, 8, true>(
      site, [&](int64_t row) { return gradient[row * packs + first_packs + site.pack]; },
      [&](int64_t row, const Pack<T, V>& pack) {
        second[row * tiling.packs + site.pack] = pack;
        float values[V];
        pack.unpack(values);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += values[i];
      });
  add_up<V>(sum, unused, tiling, scratch,
            [&](int channel, double total, double) { bias_gradient[channel] = static_cast<float>(total); });
}

bool is_possible(const Join& join) {
  return join.rows > 0 && join.first_channels > 0 && join.second_channels > 0 && join.first_channels % V == 0 &&
         join.second_channels % V == 0 && join.second_channels <= kMostImageChannels;
}

template <typename T>
cudaError_t join(const Join& join, const void* first, const void* second, const float* bias, void* to,
                 cudaStream_t stream) {
  using Values = Pack<T, V>;
  const Tiling tiling = tiling_of<V>({join.rows, join.first_channels + join.second_channels, join.is_bf16});
  join_rows<T><<<grid_of(tiling, 2, kMostBlocks), kImageThreads, 0, stream>>>(
      static_cast<const Values*>(first), static_cast<const Values*>(second), bias, static_cast<Values*>(to),
      static_cast<int>(join.first_channels / V), tiling);
  return cudaGetLastError();
}

template <typename T>
cudaError_t split(const Join& join, const void* gradient, void* second_gradient, float* bias_gradient,
                  const ChannelScratch& scratch, cudaStream_t stream) {
  using Values = Pack<T, V>;
  const Tiling tiling = tiling_of<V>({join.rows, join.second_channels, join.is_bf16});
  split_rows<T><<<grid_of(tiling, kLeastRowsPerThread, kMostBlocks / 2), kImageThreads, 0, stream>>>(
      static_cast<const Values*>(gradient), static_cast<Values*>(second_gradient), bias_gradient,
      static_cast<int>(join.first_channels / V), tiling, scratch);
  return cudaGetLastError();
}

}  // namespace

cudaError_t join_on_device(const Join& join_shape, const void* first, const void* second, const float* bias, void* to,
                           cudaStream_t stream) {
  if (!is_possible(join_shape)) return cudaErrorInvalidValue;
  return join_shape.is_bf16 ? join<__nv_bfloat16>(join_shape, first, second, bias, to, stream)
                            : join<float>(join_shape, first, second, bias, to, stream);
}

cudaError_t split_on_device(const Join& join, const void* gradient, void* second_gradient, float* bias_gradient,
                            const ChannelScratch& scratch, cudaStream_t stream) {
  if (!is_possible(join)) return cudaErrorInvalidValue;
  return join.is_bf16 ? split<__nv_bfloat16>(join, gradient, second_gradient, bias_gradient, scratch, stream)
                      : split<float>(join, gradient, second_gradient, bias_gradient, scratch, stream);
}

}  // namespace tutti
