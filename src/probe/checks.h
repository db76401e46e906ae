#pragma once

#include <string>
#include <vector>

#include "probe/clocks.h"
#include "probe/facts.h"
#include "probe/pairs.h"

namespace tutti {

enum class Severity { ok, warning, problem };

/// One thing that was looked at: a warning costs time or comfort, with a problem training cannot be trusted.
struct Finding {
  Severity severity = Severity::ok;
  std::string about;  // "libtorch": for programs
  std::string text;
};

const char* name_of(Severity severity);

/// "problem: libtorch differs: 1.13.0 on n0 (ranks 0, 1), 2.1.0 on n1 (ranks 2, 3). …"
std::string line_of(const Finding& finding);

// Pure functions of what all ranks said, in rank order.

/// Do all ranks run the same program: binary, commit, build, libtorch?
std::vector<Finding> compare_builds(const std::vector<RankFacts>& ranks);

/// The model's parameters; nothing where no rank has any. Names the first difference.
std::vector<Finding> compare_models(const std::vector<RankFacts>& ranks);

/// Whether the machines are alike, and have room and time.
std::vector<Finding> compare_machines(const std::vector<RankFacts>& ranks);

std::vector<Finding> judge_clocks(const std::vector<ClockOffset>& clocks, const std::vector<RankFacts>& ranks);

std::vector<Finding> judge_links(const std::vector<PairFigures>& pairs, const std::vector<Node>& nodes,
                                 double expected_bytes_per_s);

bool has_problem(const std::vector<Finding>& findings);

/// "n0 (ranks 0, 1), n1 (rank 2)": where these ranks are.
std::string places(const std::vector<int>& ranks, const std::vector<RankFacts>& facts);

}  // namespace tutti
