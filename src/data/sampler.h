#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

/// Which samples each rank takes in each step of an epoch.
/// The order of samples depends on seed and epoch alone. Step s takes the next ranks × batch samples of it (fewer at
/// the end), shared out to the ranks as evenly as possible, so N ranks with batch B see in each step what one rank with
/// batch N × B sees.
class Sampler {
 public:
  Sampler(int64_t data_size, uint64_t seed, int64_t batch, int ranks, bool shuffle = true);

  /// Starts an epoch, `first_sample` samples into its order (after a resume; 0 at a fresh start).
  void begin_epoch(int64_t epoch, int64_t first_sample = 0);
  /// Steps from the current start to the end of the epoch.
  int64_t steps() const;
  /// Samples that all ranks together take in step `step`, counted from the start given to begin_epoch.
  int64_t global_size(int64_t step) const;
  /// This rank's samples in that step; empty for some ranks when fewer samples than ranks are left.
  std::vector<int64_t> indices(int64_t step, int rank) const;

 private:
  int64_t data_size_;
  uint64_t seed_;
  int64_t batch_;
  int ranks_;
  bool shuffle_;
  int64_t first_sample_ = 0;
  std::vector<int64_t> order_;
};

}  // namespace tutti
