#include "kernels/max_pool.h"

#include <cmath>

#include "kernels/packs.h"

namespace tutti {
namespace {

constexpr int kPoolThreads = 128;
constexpr int kPackedChannels = 8;

/// Where in their windows the largest values of a pack are.
template <int V>
struct alignas(V) Winners {
  uint8_t places[V];
};

/// A thread makes a pack of the result; blockIdx.x is one of its rows of pixels.
struct PoolSite {
  int64_t image;
  int row, column, pack;

  __device__ PoolSite(int height, int packs)
      : image(blockIdx.x / height),
        row(static_cast<int>(blockIdx.x % height)),
        column(static_cast<int>(blockIdx.y * kPoolThreads + threadIdx.x) / packs),
        pack(static_cast<int>(blockIdx.y * kPoolThreads + threadIdx.x) % packs) {}
};

template <typename T, int V, int kWindow, int kPadding>
__global__ void __launch_bounds__(kPoolThreads)
    max_pool(const Pack<T, V>* x, Pack<T, V>* y, Winners<V>* winners, int height, int width, int pooled_height,
             int pooled_width, int packs) {
  const PoolSite site(pooled_height, packs);
  if (site.column >= pooled_width) return;
  const int top = 2 * site.row - kPadding, left = 2 * site.column - kPadding;
  Pack<T, V> loaded[kWindow * kWindow];
#pragma unroll
  for (int i = 0; i < kWindow * kWindow; ++i) {
    const int row = top + i / kWindow, column = left + i % kWindow;
    if (row >= 0 && row < height && column >= 0 && column < width)
      loaded[i] = x[((site.image * height + row) * width + column) * packs + site.pack];
  }
  float best[V];
  Winners<V> won;
  bool is_first = true;
#pragma unroll
  for (int i = 0; i < kWindow * kWindow; ++i) {
    const int row = top + i / kWindow, column = left + i % kWindow;
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    float values[V];
    loaded[i].unpack(values);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      // The first of equals wins, and NaN wins over all, as in torch.
      if (!is_first && !(values[j] > best[j] || isnan(values[j]))) continue;
      best[j] = values[j];
      won.places[j] = static_cast<uint8_t>(i);
    }
    is_first = false;
  }
  const int64_t at = ((site.image * pooled_height + site.row) * pooled_width + site.column) * packs + site.pack;
  y[at] = Pack<T, V>::of(best);
  winners[at] = won;
}

/// Here a thread makes four packs: rows 2 i and 2 i + 1 of pixels are in windows i, and i + 1 where windows overlap.
template <typename T, int V, int kWindow, int kPadding>
__global__ void __launch_bounds__(kPoolThreads)
    max_pool_gradient(const Pack<T, V>* y_gradient, const Winners<V>* winners, Pack<T, V>* x_gradient, int height,
                      int width, int pooled_height, int pooled_width, int packs) {
  constexpr int kOver = (kWindow + 1) / 2;  // windows that a pair of rows is in, and a pair of columns
  const PoolSite site((height + 1) / 2, packs);
  if (site.column >= (width + 1) / 2) return;
  Pack<T, V> loaded[kOver * kOver];
  Winners<V> won[kOver * kOver];
#pragma unroll
  for (int i = 0; i < kOver * kOver; ++i) {
    const int row = site.row + i / kOver, column = site.column + i % kOver;
    if (row < pooled_height && column < pooled_width) {
      const int64_t at = ((site.image * pooled_height + row) * pooled_width + column) * packs + site.pack;
      loaded[i] = y_gradient[at];
      won[i] = winners[at];
    }
  }
#pragma unroll
  for (int pixel = 0; pixel < 4; ++pixel) {
    const int row = 2 * site.row + pixel / 2, column = 2 * site.column + pixel % 2;
    if (row >= height || column >= width) continue;
    float sum[V] = {};
#pragma unroll
    for (int i = 0; i < kOver * kOver; ++i) {
      const int down = pixel / 2 + kPadding - 2 * (i / kOver), right = pixel % 2 + kPadding - 2 * (i % kOver);
      if (down < 0 || right < 0 || down >= kWindow || right >= kWindow) continue;
      if (site.row + i / kOver >= pooled_height || site.column + i % kOver >= pooled_width) continue;
      float gradient[V];
      loaded[i].unpack(gradient);
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (won[i].places[j] == down * kWindow + right) sum[j] += gradient[j];
    }
    x_gradient[((site.image * height + row) * width + column) * packs + site.pack] = Pack<T, V>::of(sum);
  }
}

/// With what the kernels are made for: element type, channels at once, window and padding.
template <typename T, int V, int kWindow, int kPadding>
struct PoolKernels {
  using Values = Pack<T, V>;

  static dim3 grid(int64_t images, int64_t height, int64_t width, int packs) {
    return {static_cast<unsigned>(images * height),
            static_cast<unsigned>((width * packs + kPoolThreads - 1) / kPoolThreads)};
  }
  static cudaError_t forward(const MaxPool& pool, const void* x, void* y, uint8_t* winners, cudaStream_t stream) {
    const int packs = static_cast<int>(pool.channels / V);
    max_pool<T, V, kWindow, kPadding>
        <<<grid(pool.batch, pool.pooled_height(), pool.pooled_width(), packs), kPoolThreads, 0, stream>>>(
            static_cast<const Values*>(x), static_cast<Values*>(y), reinterpret_cast<Winners<V>*>(winners),
            static_cast<int>(pool.height), static_cast<int>(pool.width), static_cast<int>(pool.pooled_height()),
            static_cast<int>(pool.pooled_width()), packs);
    return cudaGetLastError();
  }
  static cudaError_t backward(const MaxPool& pool, const void* y_gradient, const uint8_t* winners, void* x_gradient,
                              cudaStream_t stream) {
    const int packs = static_cast<int>(pool.channels / V);
    max_pool_gradient<T, V, kWindow, kPadding>
        <<<grid(pool.batch, (pool.height + 1) / 2, (pool.width + 1) / 2, packs), kPoolThreads, 0, stream>>>(
            static_cast<const Values*>(y_gradient), reinterpret_cast<const Winners<V>*>(winners),
            static_cast<Values*>(x_gradient), static_cast<int>(pool.height), static_cast<int>(pool.width),
            static_cast<int>(pool.pooled_height()), static_cast<int>(pool.pooled_width()), packs);
    return cudaGetLastError();
  }
};

template <typename T, int V, typename Work>
cudaError_t with_kernels(const MaxPool& pool, const Work& work) {
  return pool.window == 2 ? work(PoolKernels<T, V, 2, 0>()) : work(PoolKernels<T, V, 3, 1>());
}

template <typename Work>
cudaError_t with_kernels(const MaxPool& pool, const Work& work) {
  if (!has_max_pool_kernel(pool.window, pool.stride, pool.padding, pool.width, pool.channels))
    return cudaErrorInvalidValue;
  if (pool.batch * pool.pooled_height() * pool.pooled_width() * pool.channels == 0) return cudaErrorInvalidValue;
  if (pool.channels % kPackedChannels == 0)
    return pool.is_bf16 ? with_kernels<__nv_bfloat16, kPackedChannels>(pool, work)
                        : with_kernels<float, kPackedChannels>(pool, work);
  return pool.is_bf16 ? with_kernels<__nv_bfloat16, 1>(pool, work) : with_kernels<float, 1>(pool, work);
}

}  // namespace

cudaError_t max_pool_on_device(const MaxPool& pool, const void* x, void* y, uint8_t* winners, cudaStream_t stream) {
  return with_kernels(pool, [&](auto kernels) { return kernels.forward(pool, x, y, winners, stream); });
}

cudaError_t max_pool_gradient_on_device(const MaxPool& pool, const void* y_gradient, const uint8_t* winners,
                                        void* x_gradient, cudaStream_t stream) {
  return with_kernels(pool,
                      [&](auto kernels) { return kernels.backward(pool, y_gradient, winners, x_gradient, stream); });
}

}  // namespace tutti
