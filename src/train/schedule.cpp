#include "train/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {

std::vector<std::string> schedule_names() { return {"constant", "step", "cosine"}; }

double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total_steps, int64_t steps_per_epoch) {
  if (step < options.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  if (options.name == "constant") return 1;
  if (options.name == "step") {
    const double epochs = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps_per_epoch));
    return std::pow(options.gamma, std::floor(epochs / options.step_epochs));
  }
  if (options.name == "cosine") {
    const double span = static_cast<double>(std::max<int64_t>(1, total_steps - options.warmup_steps));
    const double done = std::min(1.0, static_cast<double>(step - options.warmup_steps) / span);
    return 0.5 * (1 + std::cos(done * 3.14159265358979323846));
  }
  throw UsageError(unknown_name("schedule", options.name, schedule_names()));
}

}  // namespace tutti
