#pragma once

#include <string>
#include <vector>

namespace tutti {

/// The formats in which gradients travel.
std::vector<std::string> wire_names();
/// Whether it leaves part of the gradients for later steps. Such messages are gathered, and each rank adds them up.
bool is_compressed(const std::string& wire);

}  // namespace tutti
