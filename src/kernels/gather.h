#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/gather_math.h"

namespace tutti {

/// One tensor of a batch, and all samples' values of it, both in device memory.
struct GatherColumn {
  enum class Code {
    byte,     // the number of an entry of `table`; wanted: float
    real,     // float; wanted: float
    integer,  // int32; wanted: int64
  };
  Code code = Code::real;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t elements = 0;          // of a sample
  int64_t channels = 1;          // wanted side by side, see source_element()
  const float* table = nullptr;  // 256 entries
};

struct GatherBatch {
  static constexpr int kMostColumns = 6;
  GatherColumn columns[kMostColumns];
  int column_count = 0;
  int64_t rows = 0;
  const int32_t* order = nullptr;  // numbers of samples
  const int64_t* position =
      nullptr;        // in `order`, of what comes next; in device memory, so that it can go on by itself
  int64_t first = 0;  // the batch begins so far behind it
};

/// Writes samples order[*position + first] and following into the rows of a batch, with one kernel.
cudaError_t gather_on_device(const GatherBatch& batch, cudaStream_t stream);

/// *position += by.
cudaError_t advance_on_device(int64_t* position, int64_t by, cudaStream_t stream);

}  // namespace tutti
