#pragma once

#include <random>

#include "plan/profile.h"

namespace tutti {

/// A profile of gradients with these element counts, one millisecond apart.
inline Profile profile_of(const std::vector<int64_t>& elements) {
  Profile profile;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const int parameter = static_cast<int>(elements.size() - 1 - i);
    profile.gradients.push_back(
        {"p" + std::to_string(parameter), parameter, elements[i], 1e-3 * static_cast<double>(i + 1), 0});
  }
  profile.backward_s = 1e-3 * static_cast<double>(elements.size());
  return profile;
}

inline Profile random_profile(std::mt19937& random) {
  std::vector<int64_t> elements(1 + random() % 60);
  for (int64_t& count : elements) count = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 100 : 1'000'000));
  return profile_of(elements);
}

}  // namespace tutti
