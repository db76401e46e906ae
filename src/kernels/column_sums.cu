#include "kernels/column_sums.h"

namespace tutti {
namespace {

constexpr int kColumns = 32;
constexpr int kRowsAtOnce = 32;

__global__ void __launch_bounds__(kColumns* kRowsAtOnce)
    add_rows(const float* partial, int64_t rows, int64_t columns, float* sums) {
  __shared__ float shared[kRowsAtOnce][kColumns];
  const int64_t column = int64_t{blockIdx.x} * kColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (int64_t row = threadIdx.y; row < rows; row += kRowsAtOnce) sum += partial[row * columns + column];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int half = kRowsAtOnce / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < columns) sums[column] = shared[0][threadIdx.x];
}

}  // namespace

cudaError_t add_partial_sums(const float* partial, int64_t rows, int64_t columns, float* sums, cudaStream_t stream) {
  if (columns <= 0) return cudaSuccess;
  const unsigned blocks = static_cast<unsigned>((columns + kColumns - 1) / kColumns);
  add_rows<<<blocks, dim3(kColumns, kRowsAtOnce), 0, stream>>>(partial, rows, columns, sums);
  return cudaGetLastError();
}

}  // namespace tutti
