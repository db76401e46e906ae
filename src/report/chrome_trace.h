#pragma once

#include <string>
#include <vector>

#include "base/trace.h"
#include "tutti/plan.h"

namespace tutti {

/// The traces of all ranks, in rank order, as one file for Perfetto (https://ui.perfetto.dev) or chrome://tracing: a
/// process per rank, with a thread that computes and one that communicates. `plan` is the one that was traced; it gives
/// names.
std::string chrome_trace(const std::vector<RankTrace>& ranks, const Plan& plan);

/// "conv1" for "conv1.weight": the module that a parameter belongs to.
std::string module_of(const std::string& parameter);

}  // namespace tutti
