#include "train/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {

std::vector<std::string> schedule_names() { return {"constant", "step", "cosine"}; }

double schedule_factor(const ScheduleOptions& options, double step, double total_steps, int64_t steps_per_epoch) {
  const auto warm_up = static_cast<double>(options.warmup_steps);
  if (step < warm_up) return std::min(1.0, (step + 1) / warm_up);
  if (options.name == "constant") return 1;
  if (options.name == "step") {
    const double epochs = step / static_cast<double>(std::max<int64_t>(1, steps_per_epoch));
    return std::pow(options.gamma, std::floor(epochs / options.step_epochs));
  }
  if (options.name == "cosine") {
    const double span = std::max(1.0, total_steps - warm_up);
    const double done = std::min(1.0, (step - warm_up) / span);
    return 0.5 * (1 + std::cos(done * 3.14159265358979323846));
  }
  throw UsageError(unknown_name("schedule", options.name, schedule_names()));
}

}  // namespace tutti
