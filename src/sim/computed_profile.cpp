#include "sim/computed_profile.h"

#include <algorithm>

namespace tutti {

Profile compute_profile(const ModelShape& shape, const Device& device, double batch) {
  Profile profile;
  std::vector<double> starts_s, forward_s, pass_s;  // by layer; the last: of forward, what is no matrix product
  // A small batch leaves part of the device idle: matrix products take at least what `slowest_batch` samples take.
  const double filled = std::max(batch, device.slowest_batch);
  for (const LayerShape& layer : shape.layers) {
    const double efficiency = layer.is_convolution ? device.convolution_efficiency : device.efficiency;
    const double products_s = filled * layer.flop / (device.flop_per_s * efficiency);
    const double passes_s =
        batch * layer.traffic * device.value_bytes / (device.memory_bytes_per_s * device.memory_efficiency);
    const double launches_s = device.launch_s * static_cast<double>(std::max<std::size_t>(1, layer.parameters.size()));
    starts_s.push_back(profile.forward_s);
    pass_s.push_back(passes_s);
    forward_s.push_back(std::max(products_s + passes_s, launches_s));
    profile.forward_s += forward_s.back();
  }
  int parameter = static_cast<int>(shape.tensors());
  for (std::size_t layer = shape.layers.size(); layer-- > 0;) {
    // What forward did after the product comes first in backward, and with it the bias; the product's weight is last.
    const double bias_s = profile.backward_s + 2 * std::min(pass_s[layer], forward_s[layer]);
    profile.backward_s += 2 * forward_s[layer];
    const auto& parameters = shape.layers[layer].parameters;
    for (auto entry = parameters.rbegin(); entry != parameters.rend(); ++entry) {
      const bool is_bias = shape.layers[layer].flop > 0 && entry + 1 != parameters.rend();
      profile.gradients.push_back(
          {entry->first, --parameter, entry->second, is_bias ? bias_s : profile.backward_s, starts_s[layer]});
    }
  }
  return profile;
}

Profile scaled_to(Profile profile, double seconds) {
  const double factor = seconds / (profile.forward_s + profile.backward_s);
  profile.forward_s *= factor;
  profile.backward_s *= factor;
  for (GradientProfile& gradient : profile.gradients) {
    gradient.ready_s *= factor;
    gradient.needed_s *= factor;
  }
  return profile;
}

}  // namespace tutti
