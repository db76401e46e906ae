#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine
  int64_t warmup_steps = 0;       // linear from 0 to the full rate, before any schedule
  double step_epochs = 1;         // `step`: every so many epochs the rate is multiplied by gamma
  double gamma = 0.7;
};

std::vector<std::string> schedule_names();

/// What the base learning rate is multiplied by in step `step` (from 0) of `total_steps`.
double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total_steps, int64_t steps_per_epoch);

}  // namespace tutti
