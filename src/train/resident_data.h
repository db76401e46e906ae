#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/packed_samples.h"
#include "train/evaluation.h"

namespace tutti {

/// Data sets up to this size are kept in a GPU's memory: all of MNIST is a fifth of it.
constexpr int64_t kMostResidentBytes = int64_t{256} << 20;

/// A data set that lies in a GPU's memory, and the batches that kernels gather from it. Which samples come next is
/// known on the GPU alone, so that a recorded step can be repeated and goes on by itself.
class ResidentData {
 public:
  virtual ~ResidentData() = default;
  /// The samples that this rank uses from now on, in their order. Waits for the copy, not for the GPU's other work.
  virtual void begin_epoch(const std::vector<int64_t>& order) = 0;
  /// Queues a batch of `size` samples, the first of them `first` behind the next one.
  virtual Batch gather(int64_t first, int64_t size) = 0;
  /// Queues that `count` samples have been used.
  virtual void advance(int64_t count) = 0;
};

/// For a GPU. Throws Error in a build without CUDA.
std::unique_ptr<ResidentData> make_resident_data(const PackedSamples& samples, const BatchPlace& place);

}  // namespace tutti
