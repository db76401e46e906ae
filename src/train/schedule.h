#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/schedule_options.h"

namespace tutti {

std::vector<std::string> schedule_names();

/// What the base learning rate is multiplied by when `step` of `total_steps` are done. They are those of a Course, and
/// may be parts of one.
double schedule_factor(const ScheduleOptions& options, double step, double total_steps, int64_t steps_per_epoch);

}  // namespace tutti
