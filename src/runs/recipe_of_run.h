#pragma once

#include <string>

#include "runs/run_facts.h"

namespace tutti {

/// A recipe that repeats a run from its beginning, as YAML: `tutti train --recipe FILE`. Comments say what no recipe
/// can repeat. Throws Error where the records do not say what was trained.
std::string recipe_of(const RunFacts& run);

}  // namespace tutti
