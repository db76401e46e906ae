#pragma once

#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace tutti::sweep {

/// A sweep by the path of its file or by its name, which is looked for in ./sweeps and in the source's sweeps.
Sweep find_sweep(const std::string& name, bool quick, const std::vector<std::string>& train_options,
                 const ProblemOfOption& problem_of);

/// The names of all sweeps.
std::vector<std::string> sweep_names();

/// All sweeps with their titles and numbers of cells, as a table.
std::string list_sweeps(const std::vector<std::string>& train_options);

}  // namespace tutti::sweep
