#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/table.h"

namespace tutti {

/// How often samples of one class were taken for another.
struct Confusion {
  std::vector<std::string> names;  // of the classes
  std::vector<int64_t> counts;     // [what it is][what the model says]

  std::size_t classes() const { return names.size(); }
  int64_t at(std::size_t truth, std::size_t said) const { return counts[truth * classes() + said]; }
  int64_t of(std::size_t truth) const;
  int64_t said(std::size_t guess) const;
};

/// What one class got. A share of nothing is 0, as elsewhere in the field.
struct ClassScore {
  double precision = 0;  // of what was said to be it, so much was
  double recall = 0;     // of what is it, so much was found
  double f1 = 0;         // their harmonic mean
  int64_t support = 0;   // samples of it
};
std::vector<ClassScore> class_scores(const Confusion& confusion);
/// The mean over classes that have samples; support is the sum.
ClassScore mean_score(const std::vector<ClassScore>& scores);

/// A row per class, and their mean.
Table class_table(const Confusion& confusion);
/// All counts, a row per class.
Table confusion_table(const Confusion& confusion);
/// The most frequent mistakes, at most so many.
Table mistakes_table(const Confusion& confusion, std::size_t most);

}  // namespace tutti
