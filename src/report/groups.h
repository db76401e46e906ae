#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/cell.h"
#include "report/statistics.h"

namespace tutti {

/// Repeats of one configuration, from one source.
struct Group {
  Source source = Source::measured;
  Configuration config;
  std::vector<const Cell*> cells;      // that are done; borrowed
  bool is_baseline = false;            // one of them was declared so
  Estimate rate;                       // samples/s over repeats; within the run where there is one; n = 0: not recorded
  const char* basis = "";              // what `rate` is over: "repeats", "steps" or "stated"
  std::size_t steps = 0, dropped = 0;  // used and dropped as warm-up, over all cells
  std::optional<double> baseline_rate;  // of one rank
  std::optional<double> speedup;        // over the baseline
  std::optional<double> efficiency;     // speed-up per rank

  /// What stands behind "±": none for a single figure without one.
  std::optional<double> deviation() const;
};

/// "dear-1, dear-2", "dear-1 … dear-9 (9 runs)": the names of those that have one. Rows show them.
std::string run_names(const std::vector<const Cell*>& cells);

/// Groups in order of their first cells; failed cells and stated averages are in none. `cells` must outlive them.
///
/// The baseline of a group is one rank of the same source, model, data, batch and precision: cells declared so, else
/// any of one rank. Those that also agree in more of network, strategy and so on come first; those that ran on one of
/// the group's own nodes before all others, and of several nodes the slowest's.
std::vector<Group> group_cells(const std::vector<Cell>& cells);

}  // namespace tutti
