#include "kernels/optimizer.h"

#include "kernels/launch.h"

namespace tutti {
namespace {

// Limited by memory: 64 bytes of loads per thread in flight, times this many blocks, cover its latency.
constexpr int kBlocksPerProcessor = 5;

template <int kStates, typename Rule>
__device__ void update_one(const Rule& rule, const typename Rule::Factors& factors, float gradient, float& value,
                           float& first, float& second) {
  if constexpr (kStates == 0) rule.update(factors, gradient, value);
  if constexpr (kStates == 1) rule.update(factors, gradient, value, first);
  if constexpr (kStates == 2) rule.update(factors, gradient, value, first, second);
}

/// `quads`: how many times four elements are moved at once; 0 where some buffer is not aligned for that.
template <int kStates, typename Rule>
__global__ void __launch_bounds__(kThreads) update_elements(Rule rule, UpdateRun run, int64_t quads) {
  // Powers and roots in double precision once per block.
  __shared__ typename Rule::Factors shared;
  if (threadIdx.x == 0)
    shared = rule.factors(run.scalars->learning_rate, run.scalars->step - run.lag,
                          run.gradient_scale != nullptr ? *run.gradient_scale : 1.0f);
  __syncthreads();
  const typename Rule::Factors factors = shared;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float4* const values = reinterpret_cast<float4*>(run.values);
  const float4* const gradients = reinterpret_cast<const float4*>(run.gradients);
  float4* const firsts = reinterpret_cast<float4*>(run.state[0]);
  float4* const seconds = reinterpret_cast<float4*>(run.state[1]);
  for (int64_t i = index; i < quads; i += stride) {
    float4 value = values[i], first = {}, second = {};
    const float4 gradient = gradients[i];
    if constexpr (kStates > 0) first = firsts[i];
    if constexpr (kStates > 1) second = seconds[i];
    update_one<kStates>(rule, factors, gradient.x, value.x, first.x, second.x);
    update_one<kStates>(rule, factors, gradient.y, value.y, first.y, second.y);
    update_one<kStates>(rule, factors, gradient.z, value.z, first.z, second.z);
    update_one<kStates>(rule, factors, gradient.w, value.w, first.w, second.w);
    values[i] = value;
    if constexpr (kStates > 0) firsts[i] = first;
    if constexpr (kStates > 1) seconds[i] = second;
  }
  for (int64_t i = 4 * quads + index; i < run.count; i += stride) {
    float first = 0, second = 0;
    if constexpr (kStates > 0) first = run.state[0][i];
    if constexpr (kStates > 1) second = run.state[1][i];
    update_one<kStates>(rule, factors, run.gradients[i], run.values[i], first, second);
    if constexpr (kStates > 0) run.state[0][i] = first;
    if constexpr (kStates > 1) run.state[1][i] = second;
  }
}

bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

template <int kStates, typename Rule>
cudaError_t launch(const Rule& rule, const UpdateRun& run, cudaStream_t stream) {
  if (run.count <= 0) return cudaSuccess;
  const bool all_aligned =
      is_aligned(run.values) && is_aligned(run.gradients) && is_aligned(run.state[0]) && is_aligned(run.state[1]);
  const int64_t quads = all_aligned ? run.count / 4 : 0;
  int blocks = 0;
  const cudaError_t status = count_blocks(std::max(quads, run.count - 4 * quads), kBlocksPerProcessor, blocks);
  if (status != cudaSuccess) return status;
  update_elements<kStates><<<blocks, kThreads, 0, stream>>>(rule, run, quads);
  return cudaGetLastError();
}

constexpr int kMostLambBlocks = kLambSums / 2;
constexpr int64_t kLambPerThread = 16;

/// Sums over a block's threads, in an order that does not change; all threads get them.
__device__ void add_over_block(double& first, double& second) {
  __shared__ double firsts[kThreads], seconds[kThreads];
  firsts[threadIdx.x] = first;
  seconds[threadIdx.x] = second;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      firsts[threadIdx.x] += firsts[threadIdx.x + half];
      seconds[threadIdx.x] += seconds[threadIdx.x + half];
    }
    __syncthreads();
  }
  first = firsts[0];
  second = seconds[0];
}

__device__ LambRule::Factors lamb_factors(const LambRule& rule, const UpdateRun& run) {
  __shared__ LambRule::Factors shared;
  if (threadIdx.x == 0)
    shared = rule.factors(run.scalars->learning_rate, run.scalars->step - run.lag,
                          run.gradient_scale != nullptr ? *run.gradient_scale : 1.0f);
  __syncthreads();
  return shared;
}

/// Averages, and of each block the sums of squares of values and directions.
__global__ void __launch_bounds__(kThreads) lamb_average(LambRule rule, UpdateRun run, double* sums) {
  const LambRule::Factors factors = lamb_factors(rule, run);
  double values = 0, directions = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < run.count; i += int64_t{gridDim.x} * kThreads) {
    float mean = run.state[0][i], square = run.state[1][i];
    rule.average(factors, run.gradients[i], mean, square);
    run.state[0][i] = mean;
    run.state[1][i] = square;
    const double value = run.values[i], direction = rule.direction(factors, run.values[i], mean, square);
    values += value * value;
    directions += direction * direction;
  }
  add_over_block(values, directions);
  if (threadIdx.x > 0) return;
  sums[2 * blockIdx.x] = values;
  sums[2 * blockIdx.x + 1] = directions;
}

/// `blocks`: of lamb_average, one thread here each at most.
__global__ void __launch_bounds__(kThreads) lamb_step(LambRule rule, UpdateRun run, const double* sums, int blocks) {
  const LambRule::Factors factors = lamb_factors(rule, run);
  const bool has_sum = threadIdx.x < blocks;
  double values = has_sum ? sums[2 * threadIdx.x] : 0, directions = has_sum ? sums[2 * threadIdx.x + 1] : 0;
  add_over_block(values, directions);
  const float rate = rule.rate(factors, values, directions);
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < run.count; i += int64_t{gridDim.x} * kThreads)
    run.values[i] -= rate * rule.direction(factors, run.values[i], run.state[0][i], run.state[1][i]);
}

__global__ void set_scalars(StepScalars* where, StepScalars scalars) { *where = scalars; }

}  // namespace

cudaError_t update_on_device(const SgdRule& rule, const UpdateRun& run, cudaStream_t stream) {
  return run.state[0] != nullptr ? launch<1>(rule, run, stream) : launch<0>(rule, run, stream);
}

cudaError_t update_on_device(const AdamRule& rule, const UpdateRun& run, cudaStream_t stream) {
  return launch<2>(rule, run, stream);
}

cudaError_t update_on_device(const LambRule& rule, const UpdateRun& run, double* sums, cudaStream_t stream) {
  if (run.count <= 0) return cudaSuccess;
  static_assert(kMostLambBlocks <= kThreads, "each sum of a block needs a thread");
  // By the tensor's size alone: sums are then the same on every GPU.
  const int64_t wanted = (run.count + kThreads * kLambPerThread - 1) / (kThreads * kLambPerThread);
  const int blocks = static_cast<int>(std::min<int64_t>(wanted, kMostLambBlocks));
  lamb_average<<<blocks, kThreads, 0, stream>>>(rule, run, sums);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  int step_blocks = 0;
  status = count_blocks(run.count, kBlocksPerProcessor, step_blocks);
  if (status != cudaSuccess) return status;
  lamb_step<<<step_blocks, kThreads, 0, stream>>>(rule, run, sums, blocks);
  return cudaGetLastError();
}

cudaError_t set_on_device(StepScalars* where, StepScalars scalars, cudaStream_t stream) {
  set_scalars<<<1, 1, 0, stream>>>(where, scalars);
  return cudaGetLastError();
}

}  // namespace tutti
