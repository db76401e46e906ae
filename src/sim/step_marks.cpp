#include "sim/step_marks.h"

#include <algorithm>

namespace tutti {

std::vector<Mark> marks_of(const Profile& profile) {
  std::vector<std::size_t> by_need(profile.gradients.size());
  for (std::size_t i = 0; i < by_need.size(); ++i) by_need[i] = by_need.size() - 1 - i;
  const auto& gradients = profile.gradients;
  std::stable_sort(by_need.begin(), by_need.end(),
                   [&](std::size_t a, std::size_t b) { return gradients[a].needed_s < gradients[b].needed_s; });
  std::vector<Mark> marks;
  double at = -profile.rest_s;  // which comes before forward
  for (const std::size_t slot : by_need) {
    marks.push_back({Mark::needs, std::max(0.0, gradients[slot].needed_s - at), slot});
    at = std::max(at, gradients[slot].needed_s);
  }
  marks.push_back({Mark::forward_ends, std::max(0.0, profile.forward_s - at), 0});
  at = 0;
  for (std::size_t slot = 0; slot < gradients.size(); ++slot) {
    marks.push_back({Mark::gradient, std::max(0.0, gradients[slot].ready_s - at), slot});
    at = std::max(at, gradients[slot].ready_s);
  }
  marks.push_back({Mark::backward_ends, std::max(0.0, profile.backward_s - at), 0});
  return marks;
}

}  // namespace tutti
