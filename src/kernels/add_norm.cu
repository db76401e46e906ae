// The threads of some warps, a *team*, take one row after the other. Each holds one vector of a row in registers, so
// that a row is read once, and always of the same columns, whose sums over rows it can keep in registers too.
//
// What limits these kernels is memory, if enough loads are under way at any time: forward works at two rows at once,
// and backward, which needs more registers, loads the next row before it works at one.

#include "kernels/add_norm.h"

#include <algorithm>
#include <type_traits>

#include "kernels/column_sums.h"
#include "kernels/dropout_device.h"
#include "kernels/launch.h"
#include "kernels/vectors.h"

namespace tutti {
namespace {

constexpr int kWarp = 32;
// Backward leaves one row of partial sums per block.
constexpr int kMostForwardBlocks = 32, kMostBackwardBlocks = 2;
constexpr int kLeastRowsPerTeam = 2;

/// Of one row: rows of vectors leave their threads few registers.
template <int kCount>
constexpr int kMostTeamThreads = kCount == kVector ? kThreads : 1024;
template <int kCount>
constexpr int kMostWarps = kMostTeamThreads<kCount> / kWarp;

/// `kSums` sums at the same time over a team's threads, which all get them, always in the same order.
template <int kWarps, int kSums>
struct Team {
  using Turns = float[2][kWarps][kSums];

  int threads;
  int thread;    // of the team
  int index;     // of the team in its block
  Turns& turns;  // in shared memory
  int turn = 0;

  __device__ void add(float (&values)[kSums]) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
#pragma unroll
      for (int i = 0; i < kSums; ++i) values[i] += __shfl_xor_sync(0xFFFFFFFFU, values[i], distance);
    if (threads == kWarp) return;
    // Whoever is at the next sum has read the one before the last: two turns are enough for one barrier per sum.
    float(&by_warp)[kWarps][kSums] = turns[turn];
    turn ^= 1;
    if (thread % kWarp == 0)
#pragma unroll
      for (int i = 0; i < kSums; ++i) by_warp[thread / kWarp][i] = values[i];
    // Barrier 0 is __syncthreads()'.
    asm volatile("bar.sync %0, %1;" ::"r"(index + 1), "r"(threads) : "memory");
#pragma unroll
    for (int i = 0; i < kSums; ++i) values[i] = by_warp[0][i];
    for (int warp = 1; warp < threads / kWarp; ++warp)
#pragma unroll
      for (int i = 0; i < kSums; ++i) values[i] += by_warp[warp][i];
  }
};

constexpr int kMostTeams = kThreads / kWarp;

/// Of a thread's columns. One by one, because parameters may lie anywhere. null: zeros.
template <int kCount>
__device__ void load_parameters(const float* from, int column, bool is_inside, float (&to)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = from != nullptr && is_inside ? from[column + i] : 0.0F;
}

/// Adds dropout(x + bias) to `sum`. `factors`: what dropout multiplies by.
template <typename T, int kCount, bool kDrops>
__device__ void add_dropped(const Packed<T, kCount>& packed, const float (&bias)[kCount],
                            const float (&factors)[kCount], float (&sum)[kCount]) {
  float x[kCount];
  unpack(packed, x);
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    sum[i] = kDrops ? fmaf(x[i] + bias[i], factors[i], sum[i]) : sum[i] + (x[i] + bias[i]);
}

/// What a thread of forward reads of a row.
template <typename T, int kCount>
struct ForwardInputs {
  Packed<T, kCount> x, residual;

  __device__ void read(const AddNormRun& run, int64_t at) {
    fetch(static_cast<const T*>(run.residual) + at, residual);
    if (run.x != nullptr) fetch(static_cast<const T*>(run.x) + at, x);
  }
};

// 3: 80 registers each.
template <typename T, int kCount, bool kDrops>
__global__ void __launch_bounds__(kMostTeamThreads<kCount>, kCount == kVector ? 3 : 1)
    forward_rows(AddNormRun run, T* out, int team_threads) {
  using RowTeam = Team<kMostWarps<kCount>, 1>;
  __shared__ typename RowTeam::Turns turns[kMostTeams];
  const int index = threadIdx.x / team_threads, teams = blockDim.x / team_threads;
  RowTeam team{team_threads, static_cast<int>(threadIdx.x) - index * team_threads, index, turns[index]};
  const int column = team.thread * kCount;
  const bool is_inside = column < run.width;
  const float share = 1.0F / static_cast<float>(run.width);
  const int64_t stride = int64_t{gridDim.x} * teams;
  int64_t row = int64_t{blockIdx.x} * teams + index;
  ForwardInputs<T, kCount> next;
  if (is_inside && row < run.rows) next.read(run, row * run.width + column);
  float bias[kCount], weight[kCount], shift[kCount];
  load_parameters(run.bias, column, is_inside, bias);
  load_parameters(run.weight, column, is_inside, weight);
  load_parameters(run.shift, column, is_inside, shift);
  DrawnNumbers numbers;
  if constexpr (kDrops) numbers = draw(run.dropout);
  for (; row < run.rows; row += stride) {
    const int64_t at = row * run.width + column;
    const ForwardInputs<T, kCount> in = next;
    if (is_inside && row + stride < run.rows) next.read(run, at + stride * run.width);
    float values[kCount] = {}, sum[1] = {}, squares[1] = {};
    if (is_inside) {
      float factors[kCount] = {};
      if constexpr (kDrops) {
        const uint32_t kept = choose(run.dropout.rule, numbers, at, factors);
        if (kCount == kVector && run.dropout.kept != nullptr)
          run.dropout.kept[at / kVector] = static_cast<uint8_t>(kept);
      }
      unpack(in.residual, values);
      if (run.x != nullptr) add_dropped<T, kCount, kDrops>(in.x, bias, factors, values);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[0] += values[i];
    }
    team.add(sum);
    const float mean = sum[0] * share;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] -= mean;
      squares[0] += is_inside ? values[i] * values[i] : 0.0F;
    }
    team.add(squares);
    const float inverse = rsqrtf(squares[0] * share + run.epsilon);
    if (team.thread == 0) {
      run.mean[row] = mean;
      run.inverse_deviation[row] = inverse;
    }
    if (!is_inside) continue;
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = values[i] * inverse * weight[i] + shift[i];
    store(out + at, values);
  }
}

/// What a thread of backward reads of a row.
template <typename T, int kCount>
struct BackwardInputs {
  Packed<T, kCount> given, x, residual;
  uint32_t kept;
  float mean, inverse;

  __device__ void read(const AddNormRun& run, const T* gradient, int64_t row, int64_t at) {
    fetch(gradient + at, given);
    fetch(static_cast<const T*>(run.residual) + at, residual);
    if (run.x != nullptr) fetch(static_cast<const T*>(run.x) + at, x);
    if (kCount == kVector && run.dropout.kept != nullptr) kept = run.dropout.kept[at / kVector];
    mean = run.mean[row];
    inverse = run.inverse_deviation[row];
  }
};

// 2: 128 registers each.
template <typename T, int kCount, bool kDrops>
__global__ void __launch_bounds__(kMostTeamThreads<kCount>, kCount == kVector ? 2 : 1)
    backward_rows(AddNormRun run, const T* gradient, AddNormGradients gradients, int team_threads) {
  using RowTeam = Team<kMostWarps<kCount>, 2>;
  __shared__ typename RowTeam::Turns turns[kMostTeams];
  __shared__ float columns[kMostTeamThreads<kCount> * kCount];
  const int index = threadIdx.x / team_threads, teams = blockDim.x / team_threads;
  RowTeam team{team_threads, static_cast<int>(threadIdx.x) - index * team_threads, index, turns[index]};
  const int column = team.thread * kCount;
  const bool is_inside = column < run.width;
  const float share = 1.0F / static_cast<float>(run.width);
  const int64_t stride = int64_t{gridDim.x} * teams;
  int64_t row = int64_t{blockIdx.x} * teams + index;
  BackwardInputs<T, kCount> next;
  if (is_inside && row < run.rows) next.read(run, gradient, row, row * run.width + column);
  float bias[kCount], weight[kCount];
  load_parameters(run.bias, column, is_inside, bias);
  load_parameters(run.weight, column, is_inside, weight);
  DrawnNumbers numbers;
  if constexpr (kDrops && kCount == 1) numbers = draw_again(run.dropout);
  float of_weight[kCount] = {}, of_shift[kCount] = {}, of_bias[kCount] = {};
  for (; row < run.rows; row += stride) {
    const int64_t at = row * run.width + column;
    const BackwardInputs<T, kCount> in = next;
    if (is_inside && row + stride < run.rows) next.read(run, gradient, row + stride, at + stride * run.width);
    float normal[kCount] = {}, given[kCount] = {}, sums[2] = {};
    float factors[kCount] = {};
    if (is_inside) {
      unpack(in.residual, normal);
      unpack(in.given, given);
      if constexpr (kDrops && kCount == kVector) choose_again(run.dropout.rule, in.kept, factors);
      if constexpr (kDrops && kCount == 1) choose(run.dropout.rule, numbers, at, factors);
      if (run.x != nullptr) add_dropped<T, kCount, kDrops>(in.x, bias, factors, normal);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        normal[i] = (normal[i] - in.mean) * in.inverse;
        of_weight[i] += given[i] * normal[i];
        of_shift[i] += given[i];
        given[i] *= weight[i];
        sums[0] += given[i];
        sums[1] += given[i] * normal[i];
      }
    }
    team.add(sums);
    if (!is_inside) continue;
    const float constant = in.inverse * share * sums[0], slope = in.inverse * share * sums[1];
#pragma unroll
    for (int i = 0; i < kCount; ++i) given[i] = in.inverse * given[i] - constant - normal[i] * slope;
    store(static_cast<T*>(gradients.residual) + at, given);
    if constexpr (kDrops) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) given[i] *= factors[i];
      store(static_cast<T*>(gradients.x) + at, given);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) of_bias[i] += given[i];
  }
  const auto leave = [&](const float(&of_columns)[kCount], int number) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kCount; ++i) columns[i * blockDim.x + threadIdx.x] = of_columns[i];
    __syncthreads();
    if (index > 0 || !is_inside) return;
    float total[kCount] = {};
    for (int other = 0; other < teams; ++other)
#pragma unroll
      for (int i = 0; i < kCount; ++i) total[i] += columns[i * blockDim.x + other * team_threads + team.thread];
    store(gradients.partial + (int64_t{blockIdx.x} * 3 + number) * run.width + column, total);
  };
  leave(of_weight, 0);
  leave(of_shift, 1);
  leave(of_bias, 2);
}

int most_team_threads(int count) { return count == kVector ? kMostTeamThreads<kVector> : kMostTeamThreads<1>; }

int team_threads_of(int64_t width, int count) {
  return static_cast<int>((width + int64_t{count} * kWarp - 1) / (int64_t{count} * kWarp)) * kWarp;
}

/// How the rows of a run are shared out.
struct Shape {
  int count;  // elements per thread: kVector or 1
  int team_threads;
  int teams;  // of a block

  Shape(const AddNormRun& run, bool takes_vectors)
      : count(takes_vectors && run.width % kVector == 0 ? kVector : 1),
        team_threads(team_threads_of(run.width, count)),
        teams(std::max(1, kThreads / team_threads)) {}
  int threads() const { return team_threads * teams; }
  bool is_possible() const { return team_threads <= most_team_threads(count); }
};

bool drops(const AddNormRun& run) { return run.x != nullptr && run.dropout.rule.threshold > 0; }

Shape forward_shape(const AddNormRun& run, const void* out) {
  return {run, takes_vectors(run.x) && takes_vectors(run.residual) && takes_vectors(out)};
}

/// Of single elements too, if forward did not keep the bits that vectors need.
Shape backward_shape(const AddNormRun& run, const void* gradient, const AddNormGradients& gradients) {
  return {run, takes_vectors(run.x) && takes_vectors(run.residual) && takes_vectors(gradient) &&
                   takes_vectors(gradients.x) && takes_vectors(gradients.residual) &&
                   takes_vectors(gradients.partial) && (!drops(run) || run.dropout.kept != nullptr)};
}

int64_t backward_work(const AddNormRun& run, const Shape& shape) {
  return (run.rows + shape.teams * kLeastRowsPerTeam - 1) / (shape.teams * kLeastRowsPerTeam);
}

/// Calls `launch` with the element type, the number of elements per thread and whether anything is dropped.
template <typename Launch>
cudaError_t for_kernel(const AddNormRun& run, const Shape& shape, const Launch& launch) {
  return for_type(run.type, [&](auto element) {
    const auto with = [&](auto count) {
      return drops(run) ? launch(element, count, std::true_type{}) : launch(element, count, std::false_type{});
    };
    return shape.count == kVector ? with(std::integral_constant<int, kVector>{})
                                  : with(std::integral_constant<int, 1>{});
  });
}

}  // namespace

bool add_norm_takes(int64_t width) {
  const int count = width % kVector == 0 ? kVector : 1;
  return width > 0 && team_threads_of(width, count) <= most_team_threads(count);
}

bool add_norm_keeps_bits(const AddNormRun& run, const void* out) {
  return drops(run) && forward_shape(run, out).count == kVector;
}

cudaError_t add_norm_forward(const AddNormRun& run, void* out, cudaStream_t stream) {
  if (run.rows <= 0) return cudaSuccess;
  const Shape shape = forward_shape(run, out);
  if (!shape.is_possible()) return cudaErrorInvalidValue;
  return for_kernel(run, shape, [&](auto element, auto count, auto is_dropping) {
    using T = decltype(element);
    const auto kernel = forward_rows<T, decltype(count)::value, decltype(is_dropping)::value>;
    const int64_t work = (run.rows + shape.teams - 1) / shape.teams;
    int blocks = 0;
    const cudaError_t status = count_resident_blocks(kernel, shape.threads(), kMostForwardBlocks, work, blocks);
    if (status != cudaSuccess) return status;
    kernel<<<blocks, shape.threads(), 0, stream>>>(run, static_cast<T*>(out), shape.team_threads);
    return cudaGetLastError();
  });
}

cudaError_t add_norm_partial_rows(const AddNormRun& run, int64_t& rows) {
  // Enough for vectors and for single elements.
  const int64_t work = std::max(backward_work(run, {run, true}), backward_work(run, {run, false}));
  int blocks = 0;
  const cudaError_t status = count_blocks(work * kThreads, kMostBackwardBlocks, blocks);
  rows = blocks;
  return status;
}

cudaError_t add_norm_backward(const AddNormRun& run, const void* gradient, const AddNormGradients& gradients,
                              cudaStream_t stream) {
  const Shape shape = backward_shape(run, gradient, gradients);
  if (!shape.is_possible()) return cudaErrorInvalidValue;
  int blocks = 0;
  const auto launch = [&](auto element, auto count, auto is_dropping) {
    using T = decltype(element);
    const auto kernel = backward_rows<T, decltype(count)::value, decltype(is_dropping)::value>;
    const cudaError_t status =
        count_resident_blocks(kernel, shape.threads(), kMostBackwardBlocks, backward_work(run, shape), blocks);
    if (status != cudaSuccess) return status;
    kernel<<<blocks, shape.threads(), 0, stream>>>(run, static_cast<const T*>(gradient), gradients, shape.team_threads);
    return cudaGetLastError();
  };
  const cudaError_t status = run.rows > 0 ? for_kernel(run, shape, launch) : cudaSuccess;
  if (status != cudaSuccess) return status;
  return add_partial_sums(gradients.partial, blocks, 3 * run.width, gradients.sums, stream);
}

}  // namespace tutti
