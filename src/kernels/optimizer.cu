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

__global__ void set_scalars(StepScalars* where, StepScalars scalars) { *where = scalars; }

}  // namespace

cudaError_t update_on_device(const SgdRule& rule, const UpdateRun& run, cudaStream_t stream) {
  return run.state[0] != nullptr ? launch<1>(rule, run, stream) : launch<0>(rule, run, stream);
}

cudaError_t update_on_device(const AdamRule& rule, const UpdateRun& run, cudaStream_t stream) {
  return launch<2>(rule, run, stream);
}

cudaError_t set_on_device(StepScalars* where, StepScalars scalars, cudaStream_t stream) {
  set_scalars<<<1, 1, 0, stream>>>(where, scalars);
  return cudaGetLastError();
}

}  // namespace tutti
