#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace tutti::sweep {

/// A sweep by the path of its file or by its name, which is looked for in ./sweeps and in the sweeps that are shipped.
Sweep find_sweep(const std::string& name, bool quick, const std::vector<std::string>& train_options,
                 const ProblemOfOption& problem_of);

/// The names of all sweeps.
std::vector<std::string> sweep_names();

/// A sweep as `tutti bench --list` shows it.
struct SweepSummary {
  std::string name, title;
  std::size_t cells = 0;
  std::optional<std::size_t> quick_cells;  // none: it has no quick form
};
/// All sweeps.
std::vector<SweepSummary> list_sweeps(const std::vector<std::string>& train_options);
/// As a table.
std::string describe(const std::vector<SweepSummary>& sweeps);

}  // namespace tutti::sweep
