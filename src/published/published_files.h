#pragma once

#include <string>

namespace tutti {

/// Where a file of published results lies: where `name` says, or else, for "published/NAME", among those that come with
/// the program.
std::string published_file(const std::string& name);

}  // namespace tutti
