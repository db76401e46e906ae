#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tutti {

/// One parameter's gradient as backward produces it.
struct GradientProfile {
  std::string name;
  int parameter = 0;     // index in the model's own order of parameters
  int64_t elements = 0;  // float32 each
  double ready_s = 0;    // from the start of backward until the gradient is there
  double needed_s = 0;   // from the start of forward until an operator first reads the parameter; 0 when not measured
};

/// What a training step of one model takes on one device, in the order in which gradients become ready.
struct Profile {
  std::vector<GradientProfile> gradients;
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;  // of the optimizer, for all parameters; 0 when not measured
  double rest_s = 0;    // of a step, beside all that and waiting for transfers: data, earlier micro-batches, logging
};

void to_json(nlohmann::json& json, const Profile& profile);
void from_json(const nlohmann::json& json, Profile& profile);

}  // namespace tutti
