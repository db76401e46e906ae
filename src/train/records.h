#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/record_file.h"

namespace tutti {

/// What a measurement depends on besides its options: version, commit, compiler, libraries, host, processor, cores.
nlohmann::json describe_environment();

}  // namespace tutti
