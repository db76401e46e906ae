#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runs/run_facts.h"

namespace tutti {

/// What `tutti runs show` prints: how it went, its options, nodes, epochs, checkpoints, files and program.
std::string describe(const RunFacts& run);
/// The same as to_json(run), completed.
nlohmann::json details_json(const RunFacts& run);

}  // namespace tutti
