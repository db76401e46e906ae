#include "train/records.h"

#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "base/environment.h"

namespace tutti {

nlohmann::json describe_environment() { return describe_environment(TORCH_VERSION); }

}  // namespace tutti
