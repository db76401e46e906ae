#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

/// What a measurement depends on besides its options: version, commit, compiler, host, processor, cores; and libtorch's
/// version where it is known.
nlohmann::json describe_environment(const std::string& libtorch);

}  // namespace tutti
