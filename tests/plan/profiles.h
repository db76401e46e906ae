#pragma once

#include <random>

#include "plan/strategies/plans.h"
#include "tutti/links.h"
#include "tutti/profile.h"

namespace tutti {

/// A profile of gradients with these element counts, one millisecond apart.
inline Profile profile_of(const std::vector<int64_t>& elements) {
  Profile profile;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const int parameter = static_cast<int>(elements.size() - 1 - i);
    profile.gradients.push_back({"p" + std::to_string(parameter), parameter, elements[i],
                                 1e-3 * static_cast<double>(i + 1), 0.5e-3 * static_cast<double>(parameter + 1)});
  }
  profile.backward_s = 1e-3 * static_cast<double>(elements.size());
  profile.forward_s = 0.5 * profile.backward_s + 1e-3;
  return profile;
}

/// 50 µs per message and 1 GB/s.
inline Links some_links() {
  Links links;
  links.all_reduce.startup_s = 50e-6;
  links.all_reduce.per_byte_s = 1e-9;
  return links;
}

inline Links random_links(std::mt19937& random) {
  Links links;
  links.all_reduce.startup_s = 1e-6 * static_cast<double>(1 + random() % 3000);
  links.all_reduce.per_byte_s = 1e-11 * static_cast<double>(1 + random() % 1000);
  return links;
}

inline Profile random_profile(std::mt19937& random) {
  std::vector<int64_t> elements(1 + random() % 60);
  for (int64_t& count : elements) count = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 100 : 1'000'000));
  return profile_of(elements);
}

}  // namespace tutti
