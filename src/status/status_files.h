#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "status/rank_status.h"

namespace tutti {

// Ranks show what they do in RUNS/.status/JOB/rank-N.json, from their very start, when the run has no folder yet. A job
// that did its work leaves nothing there.

/// The folder of a job, where its launcher has chosen it.
inline constexpr char kStatusVariable[] = "TUTTI_STATUS";

/// A job's folder below the one that holds the runs.
std::filesystem::path status_folder(const std::filesystem::path& runs_folder, const std::string& job);
/// The file of one rank in it.
std::filesystem::path status_file(const std::filesystem::path& folder, int rank);

/// What has become of a rank since it wrote its status.
enum class RankCondition {
  running,
  stopped,  // by a signal
  ended,    // and has said how
  gone,     // without a word: it was killed, or its machine went down
  silent,   // on another machine, from which nothing has come for a while
};

struct SeenRank {
  RankStatus status;
  RankCondition condition = RankCondition::running;

  bool is_live() const { return condition == RankCondition::running || condition == RankCondition::stopped; }
};

/// A job as its files show it, by rank.
struct SeenJob {
  std::filesystem::path folder;
  std::vector<SeenRank> ranks;

  bool is_live() const;
  double updated() const;
  /// The folder of its run, or the name given for it; "" where no rank knows it yet.
  std::string run() const;
};

SeenJob read_job(const std::filesystem::path& folder);
/// Those of a folder of runs, the last started first. What is no status is passed over.
std::vector<SeenJob> read_jobs(const std::filesystem::path& runs_folder);

/// Removes what jobs that ended badly have left there, a day later.
void forget_old_jobs(const std::filesystem::path& runs_folder);

}  // namespace tutti
