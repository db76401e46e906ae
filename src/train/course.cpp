#include "train/course.h"

#include <algorithm>

namespace tutti {
namespace {

int64_t steps_for(int64_t samples, int64_t size) { return samples <= 0 ? 0 : (samples + size - 1) / size; }

}  // namespace

Course::Course(const Sizes& sizes, int64_t epochs, int64_t steps) : sizes_(sizes) {
  end_.epoch = epochs;
  if (steps <= 0) return;
  const int64_t per_epoch = std::max<int64_t>(1, first_steps_per_epoch());
  end_.epoch = steps / per_epoch;
  end_.samples_in_epoch = steps % per_epoch * sizes_.first_step;
}

int64_t Course::first_steps_per_epoch() const { return steps_for(sizes_.data, sizes_.first_step); }

TrainProgress Course::settled(TrainProgress progress) const {
  if (progress.samples_in_epoch < sizes_.data) return progress;
  ++progress.epoch;
  progress.samples_in_epoch = 0;
  return progress;
}

double Course::first_steps(const TrainProgress& progress) const {
  const TrainProgress at = settled(progress);
  return static_cast<double>(at.epoch * first_steps_per_epoch()) +
         static_cast<double>(at.samples_in_epoch) / static_cast<double>(sizes_.first_step);
}

double Course::first_steps_in_all() const { return first_steps(end_); }

int64_t Course::steps_left_in_epoch(const TrainProgress& progress) const {
  const int64_t end = progress.epoch < end_.epoch    ? sizes_.data
                      : progress.epoch == end_.epoch ? end_.samples_in_epoch
                                                     : 0;
  return steps_for(end - progress.samples_in_epoch, sizes_.step);
}

int64_t Course::steps_left(const TrainProgress& progress) const {
  const TrainProgress at = settled(progress);
  if (at.epoch >= end_.epoch) return steps_left_in_epoch(at);
  return steps_left_in_epoch(at) + (end_.epoch - at.epoch - 1) * steps_for(sizes_.data, sizes_.step) +
         steps_for(end_.samples_in_epoch, sizes_.step);
}

int64_t Course::tests_left(const TrainProgress& progress, int64_t eval_every) const {
  if (steps_left(progress) == 0) return 0;
  const bool ends_between = end_.samples_in_epoch > 0 || end_.epoch % eval_every != 0;
  return end_.epoch / eval_every - settled(progress).epoch / eval_every + (ends_between ? 1 : 0);
}

}  // namespace tutti
