#include "status/status_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/files.h"
#include "record/record_reader.h"
#include "record/run_finder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char* word(RankCondition condition) {
  switch (condition) {
    case RankCondition::running:
      return "running";
    case RankCondition::stopped:
      return "stopped";
    case RankCondition::ended:
      return "ended";
    case RankCondition::gone:
      return "gone";
    case RankCondition::silent:
      return "silent";
  }
  return "?";
}

/// The first line of a message of several.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string describe_rank(const SeenRank& rank) {
  const RankStatus& status = rank.status;
  std::string who = fmt::format("{} (pid {})", name_of(status), status.pid);
  const std::string ago = readable_time(std::max(0.0, wall_seconds() - status.updated));
  switch (rank.condition) {
    case RankCondition::running:
      return fmt::format("{}: {}", who, describe(status));
    case RankCondition::stopped:
      return fmt::format("{}: stopped by a signal {} ago (kill -CONT {} lets it go on); it was at: {}", who, ago,
                         status.pid, describe(status));
    case RankCondition::ended:
      return fmt::format("{}: ended {} ago with exit code {}{}", who, ago, *status.exit_code,
                         status.error.empty() ? "" : ": " + first_line(status.error));
    case RankCondition::gone:
      return fmt::format("{}: gone without a word; its last sign, {} ago, was: {}", who, ago, describe(status));
    case RankCondition::silent:
      return fmt::format("{}: no sign from {} for {}; it was at: {}", who, status.host, ago, describe(status));
  }
  return who;
}

/// Those that others wait for, and that do not wait themselves.
std::set<int> held_up_by(const SeenJob& job) {
  std::set<int> awaited, waiting;
  for (const SeenRank& rank : job.ranks) {
    if (rank.condition != RankCondition::running || rank.status.awaited.call.empty()) continue;
    waiting.insert(rank.status.rank);
    awaited.insert(rank.status.awaited.ranks.begin(), rank.status.awaited.ranks.end());
  }
  for (const int rank : waiting) awaited.erase(rank);
  return awaited;
}

std::vector<int> unseen_ranks(const SeenJob& job) {
  std::set<int> unseen;
  for (int rank = 0; rank < job.ranks.front().status.ranks; ++rank) unseen.insert(rank);
  for (const SeenRank& rank : job.ranks) unseen.erase(rank.status.rank);
  return {unseen.begin(), unseen.end()};
}

/// A run that is over, or that shows nothing: what its records say.
struct RecordedRun {
  std::string folder;
  int64_t step = 0;
  std::optional<CheckpointRecord> checkpoint;
  std::optional<SummaryRecord> summary;
  std::optional<EndRecord> end;
  double age_s = 0;  // of the last record
};

RecordedRun read_recorded(const fs::path& file) {
  RecordedRun run{file.parent_path().string(), 0, {}, {}, {}, 0};
  for (RecordReader reader(file); reader.next();) {
    if (reader.is<RunRecord>()) {
      run.step = reader.as<RunRecord>().resumed_at_step;
      run.summary.reset();
      run.end.reset();
    } else if (reader.is<ProgressRecord>()) {
      run.step = reader.as<ProgressRecord>().step;
    } else if (reader.is<EpochRecord>()) {
      run.step = reader.as<EpochRecord>().step;
    } else if (reader.is<CheckpointRecord>()) {
      run.checkpoint = reader.as<CheckpointRecord>();
    } else if (reader.is<EndRecord>()) {
      run.end = reader.as<EndRecord>();
    } else if (reader.is<SummaryRecord>()) {
      run.summary = reader.as<SummaryRecord>();
    }
  }
  std::error_code ignored;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, ignored);
  run.age_s = std::max(0.0, std::chrono::duration<double>(age).count());
  return run;
}

std::string describe_recorded(const RecordedRun& run) {
  if (run.summary)
    return fmt::format("run {}: finished {} ago, {} steps on {} rank{}, {:.1f} data/s\n", run.folder,
                       readable_time(run.age_s), run.summary->steps, run.summary->ranks,
                       run.summary->ranks == 1 ? "" : "s", run.summary->samples_per_s);
  std::string text = fmt::format("run {}: not running, and not finished; its last record, {} ago, is of step {}\n",
                                 run.folder, readable_time(run.age_s), run.step);
  if (run.end) text += fmt::format("{}: {}\n", run.end->is_failed ? "it failed" : "it ended", run.end->reason);
  if (run.checkpoint)
    text +=
        fmt::format("last checkpoint: step {}; to go on: tutti train --resume {}\n", run.checkpoint->step, run.folder);
  return text;
}

json recorded_json(const RecordedRun& run) {
  json result = {{"run", run.folder},
                 {"live", false},
                 {"finished", run.summary.has_value()},
                 {"step", run.summary ? run.summary->steps : run.step}};
  if (run.checkpoint) result["checkpoint_step"] = run.checkpoint->step;
  return result;
}

bool is_same_run(const SeenJob& job, const std::string& run, const fs::path& runs_folder) {
  const std::string shown = job.run();
  if (shown.empty()) return false;
  if (shown == run) return true;
  std::error_code ignored;
  for (const fs::path& place : {fs::path(run), runs_folder / run})
    if (fs::equivalent(place, shown, ignored)) return true;
  return false;
}

}  // namespace

std::string describe(const SeenJob& job) {
  if (job.ranks.empty()) return "no rank has shown itself yet\n";
  const RankStatus& first = job.ranks.front().status;
  const std::string run = job.run();
  std::string text =
      fmt::format("run {}{}: {}{}, started {} ago\n", run.empty() ? "(no folder yet)" : run,
                  job.is_live() ? "" : " (over)", fmt::format("{} rank{}", first.ranks, first.ranks == 1 ? "" : "s"),
                  first.transport.empty() ? "" : " over " + first.transport,
                  readable_time(std::max(0.0, wall_seconds() - first.started)));
  const RankStatus* saved = nullptr;
  for (const SeenRank& rank : job.ranks) {
    text += describe_rank(rank) + "\n";
    if (rank.status.checkpoint_step >= 0 && (saved == nullptr || rank.status.checkpoint_step > saved->checkpoint_step))
      saved = &rank.status;
  }
  if (const auto unseen = unseen_ranks(job); !unseen.empty())
    text += fmt::format(
        "not seen from here: rank{} {} (not started yet, done already, or on a machine without this "
        "folder)\n",
        unseen.size() == 1 ? "" : "s", fmt::join(unseen, ", "));
  if (saved != nullptr)
    text += fmt::format("last checkpoint: step {}, {} ago\n", saved->checkpoint_step,
                        readable_time(std::max(0.0, wall_seconds() - saved->checkpoint_time)));
  if (const auto awaited = held_up_by(job); !awaited.empty())
    text += fmt::format("the others wait for: rank{} {}\n", awaited.size() == 1 ? "" : "s", fmt::join(awaited, ", "));
  return text;
}

json job_json(const SeenJob& job) {
  json ranks = json::array();
  for (const SeenRank& rank : job.ranks) {
    json one = rank.status;
    one["condition"] = word(rank.condition);
    ranks.push_back(std::move(one));
  }
  return {{"run", job.run()}, {"live", job.is_live()}, {"held_up_by", held_up_by(job)}, {"ranks", ranks}};
}

const SeenJob* find_job(const std::vector<SeenJob>& jobs, const std::string& run, const fs::path& runs_folder) {
  const SeenJob* over = nullptr;
  for (const SeenJob& job : jobs) {
    if (!is_same_run(job, run, runs_folder)) continue;
    if (job.is_live()) return &job;
    if (over == nullptr) over = &job;
  }
  return over;
}

std::string run_status(const std::string& run, const fs::path& runs_folder, bool as_json) {
  const auto shown = [&](const SeenJob& job) { return as_json ? job_json(job).dump(1) + "\n" : describe(job); };
  const std::vector<SeenJob> jobs = read_jobs(runs_folder);
  if (run.empty()) {
    for (const SeenJob& job : jobs)
      if (job.is_live()) return shown(job);
    if (!jobs.empty()) return shown(jobs.front());
    throw Error("no run is going on in {}; `tutti status RUN` says how one ended", runs_folder.string());
  }
  if (const SeenJob* const job = find_job(jobs, run, runs_folder)) return shown(*job);
  const fs::path file = run_finder().require(run, runs_folder);
  const RecordedRun recorded = read_recorded(file);
  return as_json ? recorded_json(recorded).dump(1) + "\n" : describe_recorded(recorded);
}

}  // namespace tutti
