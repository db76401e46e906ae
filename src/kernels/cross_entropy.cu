// A block per row. Forward reads a row once: a thread keeps its largest score so far and the sum of exponentials
// relative to it, which it scales when a larger one comes ("online softmax", Milakov and Gimelshein, 2018).

#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "kernels/launch.h"
#include "kernels/vectors.h"

namespace tutti {
namespace {

constexpr int kWarp = 32;
constexpr int kSumThreads = 1024;
constexpr float kLog2E = 1.4426950408889634F;

/// Of scores in units of log 2: the largest, and the sum of 2^(score - largest).
struct SoftmaxSum {
  float most = -INFINITY, sum = 0;

  __device__ void add(float other_most, float other_sum) {
    const float larger = fmaxf(most, other_most);
    if (larger == -INFINITY) return;  // of nothing; the difference would be NaN
    sum = sum * exp2f(most - larger) + other_sum * exp2f(other_most - larger);
    most = larger;
  }
};

template <typename T, int kCount>
__device__ void add_scores(const T* scores, SoftmaxSum& all) {
  float values[kCount];
  load(scores, values);
  float most = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] *= kLog2E;
    most = fmaxf(most, values[i]);
  }
  if (most > all.most) {
    all.sum *= exp2f(all.most - most);
    all.most = most;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum += exp2f(values[i] - all.most);
  all.sum += sum;
}

template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads) forward_scores(CrossEntropyRun run, float* losses) {
  __shared__ SoftmaxSum by_warp[kThreads / kWarp];
  const int64_t row = blockIdx.x;
  const int64_t target = run.targets[row];
  if (target == run.ignored) {
    if (threadIdx.x == 0) losses[row] = run.log_sums[row] = 0;
    return;
  }
  const T* const scores = static_cast<const T*>(run.scores) + row * run.stride;
  SoftmaxSum all;
  int64_t done = run.classes / kCount * kCount;
  for (int64_t i = int64_t{threadIdx.x} * kCount; i < done; i += kThreads * kCount)
    add_scores<T, kCount>(scores + i, all);
  for (int64_t i = done + threadIdx.x; i < run.classes; i += kThreads) add_scores<T, 1>(scores + i, all);
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float most = __shfl_xor_sync(0xFFFFFFFFU, all.most, distance);
    const float sum = __shfl_xor_sync(0xFFFFFFFFU, all.sum, distance);
    all.add(most, sum);
  }
  if (threadIdx.x % kWarp == 0) by_warp[threadIdx.x / kWarp] = all;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < kThreads / kWarp; ++warp) all.add(by_warp[warp].most, by_warp[warp].sum);
  const float log_sum = (all.most + log2f(all.sum)) / kLog2E;
  run.log_sums[row] = log_sum;
  losses[row] = target >= 0 && target < run.classes ? log_sum - static_cast<float>(scores[target]) : NAN;
}

/// One block.
__global__ void __launch_bounds__(kSumThreads) mean_of_losses(CrossEntropyRun run, const float* losses) {
  __shared__ float sums[kSumThreads], counts[kSumThreads];
  float sum = 0, count = 0;
  for (int64_t row = threadIdx.x; row < run.rows; row += kSumThreads) {
    sum += losses[row];
    count += run.targets[row] == run.ignored ? 0.0F : 1.0F;
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = count;
  __syncthreads();
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
      counts[threadIdx.x] += counts[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  run.mean[1] = 1 / fmaxf(counts[0], 1.0F);
  run.mean[0] = sums[0] * run.mean[1];
}

/// blockIdx.x: rows; blockIdx.y: parts of them.
template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads) backward_scores(CrossEntropyRun run, const float* gradient, T* of_scores) {
  const int64_t row = blockIdx.x, target = run.targets[row];
  const bool counts = target != run.ignored;
  const float factor = counts ? *gradient * run.mean[1] : 0.0F;
  const float log_sum = run.log_sums[row] * kLog2E;
  const T* const scores = static_cast<const T*>(run.scores) + row * run.stride;
  T* const to = of_scores + row * run.stride;
  for (int64_t i = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount; i < run.stride;
       i += int64_t{gridDim.y} * kThreads * kCount) {
    float values[kCount] = {};
    if (counts) {
      load(scores + i, values);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float share = exp2f(values[j] * kLog2E - log_sum);
        // Between rows there may be anything.
        values[j] = i + j < run.classes ? (share - (i + j == target ? 1.0F : 0.0F)) * factor : 0.0F;
      }
    }
    store(to + i, values);
  }
}

bool rows_take_vectors(const CrossEntropyRun& run) { return run.stride % kVector == 0 && takes_vectors(run.scores); }

}  // namespace

cudaError_t cross_entropy_forward(const CrossEntropyRun& run, float* losses, cudaStream_t stream) {
  if (run.rows > 0) {
    const auto blocks = static_cast<unsigned>(run.rows);
    for_type(run.type, [&](auto element) {
      using T = decltype(element);
      if (rows_take_vectors(run))
        forward_scores<T, kVector><<<blocks, kThreads, 0, stream>>>(run, losses);
      else
        forward_scores<T, 1><<<blocks, kThreads, 0, stream>>>(run, losses);
    });
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) return status;
  }
  mean_of_losses<<<1, kSumThreads, 0, stream>>>(run, losses);
  return cudaGetLastError();
}

cudaError_t cross_entropy_backward(const CrossEntropyRun& run, const float* gradient, void* of_scores,
                                   cudaStream_t stream) {
  if (run.rows <= 0 || run.stride <= 0) return cudaSuccess;
  const bool is_fast = rows_take_vectors(run) && takes_vectors(of_scores);
  const int64_t per_block = int64_t{kThreads} * (is_fast ? kVector : 1) * 4;
  const dim3 grid(static_cast<unsigned>(run.rows),
                  static_cast<unsigned>(std::min<int64_t>(64, (run.stride + per_block - 1) / per_block)));
  for_type(run.type, [&](auto element) {
    using T = decltype(element);
    if (is_fast)
      backward_scores<T, kVector><<<grid, kThreads, 0, stream>>>(run, gradient, static_cast<T*>(of_scores));
    else
      backward_scores<T, 1><<<grid, kThreads, 0, stream>>>(run, gradient, static_cast<T*>(of_scores));
  });
  return cudaGetLastError();
}

}  // namespace tutti
