#pragma once

#include <string>
#include <vector>

#include "report/groups.h"

namespace tutti {

/// What can be said of the first of a contest.
enum class Verdict {
  winner,      // its lead over the next is significant
  no_winner,   // noise exceeds the difference
  cannot_tell  // one run of one of them: how runs differ is not known
};

/// Groups that ran under the same conditions, fastest first; at least two.
struct Contest {
  Configuration conditions;  // what they share
  std::vector<const Group*> groups;
  Ratio lead;  // of the first over the second
  Verdict verdict = Verdict::cannot_tell;

  const Group& first() const { return *groups[0]; }
  const Group& second() const { return *groups[1]; }
  /// Those that the first cannot be told from, with it.
  std::vector<const Group*> equals() const;
};

/// Strategies of the same source under the same conditions, on two ranks at least.
std::vector<Contest> strategy_contests(const std::vector<Group>& groups);

/// What stands above a report: its answer, in a line or two.
struct Headline {
  std::string label;   // "fastest", "no winner", "cannot tell"
  std::string value;   // "dear, 12.0 % ahead"
  std::string detail;  // "of bsp; 95 %: 8.1 to 16.2 %"
};
/// Who is fastest: of the strategies, else of all that trained the same model on the same data. Of a single run, what
/// it reached. Empty where there is nothing of the kind.
std::vector<Headline> headlines(const std::vector<Group>& groups);

}  // namespace tutti
