#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "report/groups.h"
#include "report/table.h"

namespace tutti {

// The tables of a report, one form per file. A form that nothing in the cells fits has no rows. Failed cells are in
// none but failures_table(). `notes` gets what a reader should know of a table's figures.

/// Training and communication time of every rank and epoch, by loader workers and number of ranks.
Table rank_times_table(const std::vector<Cell>& cells);

/// Data/s every so many steps, with the speed-up over one rank of the same node.
Table step_rates_table(const std::vector<Group>& groups, std::vector<std::string>& notes);

/// Epoch time, test time and accuracy.
Table epochs_table(const std::vector<Cell>& cells);

/// Samples/s ± deviation by model, network, strategy and number of ranks, with scaling efficiency.
Table strategies_table(const std::vector<Group>& groups);

/// Who is fastest among strategies under the same conditions, or that noise exceeds the difference.
Table fastest_table(const std::vector<Group>& groups, std::vector<std::string>& notes);

/// What stands behind those figures: repeats, median, mean, 95 % interval, steps used and dropped; not of
/// what a text states.
Table statistics_table(const std::vector<Group>& groups);

/// Nodes × ranks of each: steps, run time, speed-up, node list, with averages over repeats on different nodes.
Table nodes_table(const std::vector<Cell>& cells, std::vector<std::string>& notes);

/// Whether a speed-up that a text states is another than its own figures give: with two digits, rounded or cut off.
inline bool is_stated_otherwise(double stated, double speedup) { return std::abs(stated - speedup) > 0.0101; }

/// Cells whose last attempt failed, and why.
Table failures_table(const std::vector<Cell>& cells);

}  // namespace tutti
