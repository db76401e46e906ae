#include "status/status_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <thread>

#include "base/files.h"
#include "base/json_files.h"
#include "base/proc_files.h"
#include "comm/nodes.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = ".status";
// Ranks write twice a second; a network file system may show that late.
constexpr double kSilentS = 15;
constexpr double kForgottenS = 24 * 3600;

RankCondition condition_of(const RankStatus& status) {
  if (status.exit_code) return RankCondition::ended;
  if (status.host != this_host())
    return wall_seconds() - status.updated > kSilentS ? RankCondition::silent : RankCondition::running;
  const auto process = process_stat(status.pid);
  if (!process || process->start_time != status.process_start || process->state == 'Z' || process->state == 'X')
    return RankCondition::gone;
  return process->state == 'T' || process->state == 't' ? RankCondition::stopped : RankCondition::running;
}

/// Empty for what cannot be read as a status, also not a moment later: it may just be written.
std::optional<RankStatus> read_status(const fs::path& file) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      return read_json_file(file).get<RankStatus>();
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return std::nullopt;
}

double started(const SeenJob& job) { return job.ranks.empty() ? 0 : job.ranks.front().status.started; }

}  // namespace

fs::path status_folder(const fs::path& runs_folder, const std::string& job) {
  std::string name = job;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  if (name.empty() || name[0] == '.') name = "job" + name;
  return fs::absolute(runs_folder) / kFolder / name;
}

fs::path status_file(const fs::path& folder, int rank) { return folder / fmt::format("rank-{}.json", rank); }

bool SeenJob::is_live() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const SeenRank& rank) { return rank.is_live(); });
}

double SeenJob::updated() const {
  double last = 0;
  for (const SeenRank& rank : ranks) last = std::max(last, rank.status.updated);
  return last;
}

std::string SeenJob::run() const {
  for (const SeenRank& rank : ranks)
    if (!rank.status.run.empty()) return rank.status.run;
  return "";
}

SeenJob read_job(const fs::path& folder) {
  SeenJob job{folder, {}};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const auto status = read_status(entry.path())) job.ranks.push_back({*status, condition_of(*status)});
  std::sort(job.ranks.begin(), job.ranks.end(),
            [](const SeenRank& a, const SeenRank& b) { return a.status.rank < b.status.rank; });
  return job;
}

std::vector<SeenJob> read_jobs(const fs::path& runs_folder) {
  std::vector<SeenJob> jobs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_folder / kFolder, ignored)) {
    SeenJob job = read_job(entry.path());
    if (!job.ranks.empty()) jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const SeenJob& a, const SeenJob& b) { return started(a) > started(b); });
  return jobs;
}

void forget_old_jobs(const fs::path& runs_folder) {
  for (const SeenJob& job : read_jobs(runs_folder))
    if (!job.is_live() && wall_seconds() - job.updated() > kForgottenS) remove_tree(job.folder);
}

}  // namespace tutti
