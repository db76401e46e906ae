#pragma once

#include <cstdint>

namespace tutti {

/// How far training has come.
struct TrainProgress {
  int64_t step = 0;              // done, over all epochs
  int64_t epoch = 0;             // under way
  int64_t samples_in_epoch = 0;  // of that epoch's order, already trained on by all ranks together
};

/// Where a run ends and how far it has come, counted in samples. A run may go on with another number of ranks or
/// another batch, and then its steps have another size. What options count in steps (--steps, --warmup) stays counted
/// in steps of the size that the run began with: its first steps.
class Course {
 public:
  struct Sizes {
    int64_t data = 0;        // samples of an epoch
    int64_t step = 0;        // samples that all ranks take in a step now
    int64_t first_step = 0;  // and took when the run began
  };
  /// `steps`: of the first size, in all; 0: the run ends after `epochs`.
  Course(const Sizes& sizes, int64_t epochs, int64_t steps);

  /// In steps of the first size: done so far, in an epoch, and in all. Whole numbers as long as the size stays.
  double first_steps(const TrainProgress& progress) const;
  int64_t first_steps_per_epoch() const;
  double first_steps_in_all() const;

  /// Steps of the present size that are left: in this epoch, and in all.
  int64_t steps_left_in_epoch(const TrainProgress& progress) const;
  int64_t steps_left(const TrainProgress& progress) const;
  /// Tests that are left where one comes after every so many epochs, and one at the end.
  int64_t tests_left(const TrainProgress& progress, int64_t eval_every) const;

  /// An epoch of which nothing is left is over.
  TrainProgress settled(TrainProgress progress) const;

 private:
  const Sizes sizes_;
  TrainProgress end_;
};

}  // namespace tutti
