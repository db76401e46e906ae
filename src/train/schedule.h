#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/schedule_options.h"

namespace tutti {

std::vector<std::string> schedule_names();

/// What the base learning rate is multiplied by in step `step` (from 0) of `total_steps`.
double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total_steps, int64_t steps_per_epoch);

}  // namespace tutti
