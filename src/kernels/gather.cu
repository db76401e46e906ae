#include "kernels/gather.h"

#include "kernels/launch.h"

namespace tutti {
namespace {

constexpr int kBlocksPerProcessor = 8;

/// One column per blockIdx.y.
__global__ void __launch_bounds__(kThreads) gather_rows(GatherBatch batch) {
  const GatherColumn column = batch.columns[blockIdx.y];
  const int32_t* const order = batch.order + *batch.position + batch.first;
  const int64_t count = batch.rows * column.elements;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t row = i / column.elements;
    const int64_t from =
        order[row] * column.elements + source_element(i - row * column.elements, column.elements, column.channels);
    switch (column.code) {
      case GatherColumn::Code::byte:
        static_cast<float*>(column.to)[i] = column.table[static_cast<const uint8_t*>(column.from)[from]];
        break;
      case GatherColumn::Code::real:
        static_cast<float*>(column.to)[i] = static_cast<const float*>(column.from)[from];
        break;
      case GatherColumn::Code::integer:
        static_cast<int64_t*>(column.to)[i] = static_cast<const int32_t*>(column.from)[from];
        break;
    }
  }
}

__global__ void add_to(int64_t* position, int64_t by) { *position += by; }

}  // namespace

cudaError_t gather_on_device(const GatherBatch& batch, cudaStream_t stream) {
  int64_t most = 0;
  for (int i = 0; i < batch.column_count; ++i) most = std::max(most, batch.rows * batch.columns[i].elements);
  if (most == 0) return cudaSuccess;
  int blocks = 0;
  const cudaError_t status = count_blocks(most, kBlocksPerProcessor, blocks);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(batch.column_count));
  gather_rows<<<grid, kThreads, 0, stream>>>(batch);
  return cudaGetLastError();
}

cudaError_t advance_on_device(int64_t* position, int64_t by, cudaStream_t stream) {
  add_to<<<1, 1, 0, stream>>>(position, by);
  return cudaGetLastError();
}

}  // namespace tutti
