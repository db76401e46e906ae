#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.h"

namespace tutti {

/// One tensor of every sample of a data set, in as few bytes as hold it exactly.
struct PackedColumn {
  torch::Tensor values;      // [samples, …]: uint8 where there are at most 256 different floats, else float32; int32
  std::vector<float> table;  // of uint8: what each number stands for
};

/// All samples of a data set, on the CPU, ready to be kept in a GPU's memory.
struct PackedSamples {
  std::vector<PackedColumn> columns;  // a batch's inputs, then its target
  int64_t bytes() const;
};

/// Loads every sample once, with `workers` threads. Nothing where samples vary from epoch to epoch, or where they would
/// take more than `most_bytes`.
std::optional<PackedSamples> pack_samples(const std::shared_ptr<const Dataset>& data, int64_t most_bytes, int workers);

}  // namespace tutti
