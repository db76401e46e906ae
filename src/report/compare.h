#pragma once

#include <string>
#include <vector>

#include "report/groups.h"
#include "report/table.h"

namespace tutti {

enum class Change {
  faster,
  slower,
  unchanged,  // within the threshold, as far as can be told
  unclear,    // noise exceeds the threshold, or no spread is known
  untold      // one run on either side: how runs differ is not known
};

/// One configuration in two sets of cells, or two that differ in little.
struct ComparedConfig {
  Configuration config;
  std::string differs;  // "bsp → dear": in what B is another configuration; "" where it is the same
  Source source_a = Source::measured, source_b = Source::measured;
  Estimate a, b;  // samples/s; runs per second where only run times are known
  Ratio ratio;    // b over a
  Change change = Change::unclear;
  bool is_one_run = false;  // on either side: how runs differ is not known
};

struct Comparison {
  std::vector<ComparedConfig> configs;
  std::vector<std::string> only_in_a, only_in_b, failed_in_b;  // that were done in a
  double threshold = 0;

  /// Something got slower, or fails now: what CI should stop at.
  bool is_worse() const;
};

/// What got faster or slower from `a` to `b`: a change counts if it is larger than `threshold` (0.02: 2 %) and
/// significant at 5 % (Welch's test on logarithms, adjusted for as many tests as there are configurations).
/// One run says nothing of how runs differ: with one on either side nobody can tell. Configurations of different
/// sources are compared where each side has one source only. Where they have nothing in common, those
/// are paired in which only the strategy differs; at last, where each side has one left, whatever differs, but for
/// model and data.
Comparison compare_cells(const std::vector<Cell>& a, const std::vector<Cell>& b, double threshold);

Table comparison_table(const Comparison& comparison);
/// "3 faster, 1 slower, …" and what is only on one side.
std::string sum_up(const Comparison& comparison);

}  // namespace tutti
