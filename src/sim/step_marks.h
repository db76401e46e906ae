#pragma once

#include <cstddef>
#include <vector>

#include "tutti/profile.h"

namespace tutti {

/// A point of a step that computation reaches.
struct Mark {
  enum Kind { needs, forward_ends, gradient, backward_ends } kind;
  double work_s;  // of computation since the mark before
  std::size_t slot;
};

/// The points of one step, in the order in which computation reaches them: forward needs parameters, backward produces
/// gradients.
std::vector<Mark> marks_of(const Profile& profile);

}  // namespace tutti
