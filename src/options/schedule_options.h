#pragma once

#include <cstdint>
#include <string>

namespace tutti {

struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine
  int64_t warmup_steps = 0;       // linear from 0 to the full rate, before any schedule
  double step_epochs = 1;         // `step`: every so many epochs the rate is multiplied by gamma
  double gamma = 0.7;
};

}  // namespace tutti
