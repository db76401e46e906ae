// A warp takes one vector of each of its lanes' columns from row to row: what belongs to columns stays in registers.

#include "kernels/bias_activation.h"

#include <algorithm>
#include <type_traits>

#include "kernels/activation_math.h"
#include "kernels/column_sums.h"
#include "kernels/dropout_device.h"
#include "kernels/launch.h"
#include "kernels/vectors.h"

namespace tutti {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostForwardBlocks = 8;
constexpr int kMostBackwardBlocks = 4;  // of a processor; each block leaves a row of partial sums
constexpr int kRowsInFlight = 4;        // of a warp, to cover the latency of memory

/// Fewer bits in the result, fewer instructions.
template <typename T>
using GeluOf = std::conditional_t<std::is_same_v<T, float>, Gelu, ShortGelu>;

template <typename T>
struct GeluForward {
  const T* x;
  template <int kCount>
  struct Row {
    Packed<T, kCount> x;
  };
  __device__ void begin() {}
  template <int kCount>
  __device__ void read(int64_t at, Row<kCount>& row) const {
    fetch(x + at, row.x);
  }
  template <int kCount>
  __device__ void compute(int64_t /*at*/, const float (&bias)[kCount], const Row<kCount>& row,
                          float (&out)[kCount]) const {
    unpack(row.x, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = GeluOf<T>::value(out[i] + bias[i]);
  }
};

template <typename T>
struct GeluBackward {
  const T* x;
  const T* gradient;
  template <int kCount>
  struct Row {
    Packed<T, kCount> x, gradient;
  };
  __device__ void begin() {}
  template <int kCount>
  __device__ void read(int64_t at, Row<kCount>& row) const {
    fetch(x + at, row.x);
    fetch(gradient + at, row.gradient);
  }
  template <int kCount>
  __device__ void compute(int64_t /*at*/, const float (&bias)[kCount], const Row<kCount>& row,
                          float (&out)[kCount]) const {
    float values[kCount];
    unpack(row.x, values);
    unpack(row.gradient, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] *= GeluOf<T>::derivative(values[i] + bias[i]);
  }
};

template <typename T>
struct ReluForward {
  const T* x;
  DropoutRun dropout;
  DrawnNumbers numbers;
  template <int kCount>
  struct Row {
    Packed<T, kCount> x;
  };
  __device__ void begin() {
    if (dropout.rule.threshold > 0) numbers = draw(dropout);
  }
  template <int kCount>
  __device__ void read(int64_t at, Row<kCount>& row) const {
    fetch(x + at, row.x);
  }
  template <int kCount>
  __device__ void compute(int64_t at, const float (&bias)[kCount], const Row<kCount>& row, float (&out)[kCount]) const {
    unpack(row.x, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float sum = out[i] + bias[i];
      out[i] = sum <= 0 ? 0.0F : sum;  // "not below", so that NaN stays NaN
    }
    if (dropout.rule.threshold == 0) return;
    float factors[kCount];
    choose(dropout.rule, numbers, at, factors);
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] *= factors[i];
  }
};

template <typename T>
struct ReluBackward {
  const T* result;
  const T* gradient;
  float scale;
  template <int kCount>
  struct Row {
    Packed<T, kCount> result, gradient;
  };
  __device__ void begin() {}
  template <int kCount>
  __device__ void read(int64_t at, Row<kCount>& row) const {
    fetch(result + at, row.result);
    fetch(gradient + at, row.gradient);
  }
  template <int kCount>
  __device__ void compute(int64_t /*at*/, const float (&)[kCount], const Row<kCount>& row, float (&out)[kCount]) const {
    float results[kCount];
    unpack(row.result, results);
    unpack(row.gradient, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = results[i] <= 0 ? 0.0F : out[i] * scale;
  }
};

/// Nothing but what sums over rows are made of.
template <typename T>
struct RowsAsTheyAre {
  const T* rows;
  template <int kCount>
  struct Row {
    Packed<T, kCount> values;
  };
  __device__ void begin() {}
  template <int kCount>
  __device__ void read(int64_t at, Row<kCount>& row) const {
    fetch(rows + at, row.values);
  }
  template <int kCount>
  __device__ void compute(int64_t /*at*/, const float (&)[kCount], const Row<kCount>& row, float (&out)[kCount]) const {
    unpack(row.values, out);
  }
};

/// blockIdx.x: columns; blockIdx.y: rows. Results go to `out` and their sums over rows to `partial`, unless one is
/// null.
template <typename T, int kCount, typename Work>
__global__ void __launch_bounds__(kThreads) each_row(BiasRun run, Work work, T* out, float* partial) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t column = (int64_t{blockIdx.x} * kWarp + lane) * kCount;
  const bool is_inside = column < run.width;
  work.begin();
  float sums[kCount] = {};
  if (is_inside) {
    float bias[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      bias[i] = run.bias != nullptr ? run.bias[column + i] : 0.0F;  // which may lie anywhere
    const int64_t stride = int64_t{gridDim.y} * kWarps;
    for (int64_t first = int64_t{blockIdx.y} * kWarps + warp; first < run.rows; first += kRowsInFlight * stride) {
      typename Work::template Row<kCount> rows[kRowsInFlight];
#pragma unroll
      for (int i = 0; i < kRowsInFlight; ++i)
        if (first + i * stride < run.rows) work.read((first + i * stride) * run.width + column, rows[i]);
#pragma unroll
      for (int i = 0; i < kRowsInFlight; ++i) {
        if (first + i * stride >= run.rows) continue;
        const int64_t at = (first + i * stride) * run.width + column;
        float result[kCount];
        work.compute(at, bias, rows[i], result);
        if (out != nullptr) store(out + at, result);
#pragma unroll
        for (int j = 0; j < kCount; ++j) sums[j] += result[j];
      }
    }
  }
  if (partial == nullptr) return;
  __shared__ float shared[kWarps][kWarp][kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) shared[warp][lane][i] = sums[i];
  __syncthreads();
  if (warp > 0 || !is_inside) return;
  for (int other = 1; other < kWarps; ++other)
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += shared[other][lane][i];
  store(partial + int64_t{blockIdx.y} * run.width + column, sums);
}

/// How the elements of a run are shared out.
struct Shape {
  int count;             // elements per thread: kVector or 1
  int64_t across, down;  // blocks, of which each warp has at most kRowsInFlight rows

  Shape(const BiasRun& run, bool takes_vectors)
      : count(takes_vectors && run.width % kVector == 0 ? kVector : 1),
        across((run.width + kWarp * count - 1) / (kWarp * count)),
        down(std::max<int64_t>(1, (run.rows + kWarps * kRowsInFlight - 1) / (kWarps * kRowsInFlight))) {}
  /// So many blocks down that about `blocks` are at work.
  int64_t down_of(int64_t blocks) const {
    return std::max<int64_t>(1, std::min<int64_t>(down, blocks / std::max<int64_t>(1, across)));
  }
};

template <typename T, int kCount, typename Work>
cudaError_t launch(const BiasRun& run, const Work& work, const Shape& shape, int most_blocks, T* out, float* partial,
                   int64_t& down, cudaStream_t stream) {
  int blocks = 0;
  const auto kernel = each_row<T, kCount, Work>;
  const cudaError_t status = count_resident_blocks(kernel, kThreads, most_blocks, shape.across * shape.down, blocks);
  if (status != cudaSuccess) return status;
  down = shape.down_of(blocks);
  const dim3 grid(static_cast<unsigned>(shape.across), static_cast<unsigned>(down));
  kernel<<<grid, kThreads, 0, stream>>>(run, work, out, partial);
  return cudaGetLastError();
}

/// `partial` null: without sums. `down`: rows of partial sums.
template <typename T, typename Work>
cudaError_t launch(const BiasRun& run, const Work& work, bool takes_vectors, int most_blocks, void* out, float* partial,
                   int64_t& down, cudaStream_t stream) {
  down = 0;
  if (run.rows <= 0 || run.width <= 0) return cudaSuccess;
  const Shape shape(run, takes_vectors);
  return shape.count == kVector
             ? launch<T, kVector>(run, work, shape, most_blocks, static_cast<T*>(out), partial, down, stream)
             : launch<T, 1>(run, work, shape, most_blocks, static_cast<T*>(out), partial, down, stream);
}

template <typename T, typename Work>
cudaError_t launch_forward(const BiasRun& run, const Work& work, const void* x, void* out, cudaStream_t stream) {
  int64_t down = 0;
  return launch<T>(run, work, takes_vectors(x) && takes_vectors(out), kMostForwardBlocks, out, nullptr, down, stream);
}

template <typename T, typename Work>
cudaError_t launch_backward(const BiasRun& run, const Work& work, const void* saved, const void* gradient,
                            const BiasGradients& gradients, cudaStream_t stream) {
  const bool is_aligned =
      takes_vectors(saved) && takes_vectors(gradient) && takes_vectors(gradients.x) && takes_vectors(gradients.partial);
  int64_t down = 0;
  const cudaError_t status =
      launch<T>(run, work, is_aligned, kMostBackwardBlocks, gradients.x, gradients.partial, down, stream);
  if (status != cudaSuccess) return status;
  return add_partial_sums(gradients.partial, down, run.width, gradients.bias, stream);
}

}  // namespace

cudaError_t bias_partial_rows(const BiasRun& run, int64_t& rows) {
  rows = 1;
  for (const bool takes_vectors : {false, true}) {
    const Shape shape(run, takes_vectors);
    int blocks = 0;
    const cudaError_t status = count_blocks(shape.across * shape.down * kThreads, kMostBackwardBlocks, blocks);
    if (status != cudaSuccess) return status;
    rows = std::max(rows, shape.down_of(blocks));
  }
  return cudaSuccess;
}

cudaError_t bias_gelu_forward(const BiasRun& run, const void* x, void* out, cudaStream_t stream) {
  return for_type(run.type, [&](auto element) {
    using T = decltype(element);
    return launch_forward<T>(run, GeluForward<T>{static_cast<const T*>(x)}, x, out, stream);
  });
}

cudaError_t bias_gelu_backward(const BiasRun& run, const void* x, const void* gradient, const BiasGradients& gradients,
                               cudaStream_t stream) {
  return for_type(run.type, [&](auto element) {
    using T = decltype(element);
    const GeluBackward<T> work{static_cast<const T*>(x), static_cast<const T*>(gradient)};
    return launch_backward<T>(run, work, x, gradient, gradients, stream);
  });
}

cudaError_t bias_relu_forward(const BiasRun& run, const DropoutRun& dropout, const void* x, void* out,
                              cudaStream_t stream) {
  return for_type(run.type, [&](auto element) {
    using T = decltype(element);
    return launch_forward<T>(run, ReluForward<T>{static_cast<const T*>(x), dropout, {}}, x, out, stream);
  });
}

cudaError_t bias_relu_backward(const BiasRun& run, const DropoutRule& rule, const void* out, const void* gradient,
                               const BiasGradients& gradients, cudaStream_t stream) {
  return for_type(run.type, [&](auto element) {
    using T = decltype(element);
    const ReluBackward<T> work{static_cast<const T*>(out), static_cast<const T*>(gradient), rule.scale};
    return launch_backward<T>(run, work, out, gradient, gradients, stream);
  });
}

cudaError_t bias_gradient(const BiasRun& run, const void* gradient, const BiasGradients& gradients,
                          cudaStream_t stream) {
  return for_type(run.type, [&](auto element) {
    using T = decltype(element);
    const RowsAsTheyAre<T> work{static_cast<const T*>(gradient)};
    return launch_backward<T>(run, work, gradient, gradient, {nullptr, gradients.bias, gradients.partial}, stream);
  });
}

}  // namespace tutti
