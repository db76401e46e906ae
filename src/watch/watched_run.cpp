#include "watch/watched_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "status/status_report.h"

namespace tutti {
namespace {

using nlohmann::json;

// Ranks write twice a second; what they used in less time says little.
constexpr double kUsageEveryS = 1;

}  // namespace

HeldRows parse_held_rows(const std::string& text) {
  HeldRows held;
  unsigned long long generation = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%16llu.%9zu.%9zu.%9zu%n", &generation, &held.rows[0], &held.rows[1], &held.rows[2],
                  &used) != 4 ||
      static_cast<std::size_t>(used) != text.size())
    return {};
  held.generation = generation;
  return held;
}

// Whoever held rows of an earlier process has other ones. JavaScript's whole numbers end at 2^53.
WatchedRun::WatchedRun() : first_generation_(uint64_t{std::random_device()()} << 16) {}

void WatchedRun::look(const std::filesystem::path& records, const SeenJob* job, double now_s) {
  history_.read(records);
  if (job != nullptr && job->is_live() && now_s - measured_s_ >= kUsageEveryS) {
    measured_s_ = now_s;
    measure_usage(*job);
  }
  job_ = json::object();
  if (job != nullptr) {
    job_ = job_json(*job);
    job_.erase("run");
    for (json& rank : job_["ranks"])
      if (const auto cores = cores_.find(rank.at("rank").get<int>()); cores != cores_.end())
        rank["cores"] = cores->second;
  }
  state_ = state(job);
}

void WatchedRun::measure_usage(const SeenJob& job) {
  cores_.clear();
  double sum = 0, updated = 0;
  for (const SeenRank& rank : job.ranks) {
    const RankStatus& status = rank.status;
    Used& before = used_[status.rank];
    const double passed = status.updated - before.updated;
    if (before.process_start == status.process_start && passed > 0 && rank.is_live()) {
      sum += cores_[status.rank] = (status.cpu_s - before.cpu_s) / passed;
      updated = std::max(updated, status.updated);
    }
    before = {status.process_start, status.updated, status.cpu_s};
  }
  if (cores_.empty()) return;
  const int64_t step = job.ranks.front().status.step;
  const bool is_same = usage_.go_back_to(step);  // when it was resumed
  if (!usage_.add(step, updated, {{"cores", sum}}) || !is_same) ++usage_changes_;
}

std::string WatchedRun::state(const SeenJob* job) const {
  if (job != nullptr && job->is_live()) return "running";
  if (history_.is_finished()) return "finished";
  if (job != nullptr) return "failed";
  return history_.is_empty() ? "missing" : "idle";
}

json WatchedRun::told(const HeldRows& held) const {
  const uint64_t generation = first_generation_ + history_.changes() + usage_changes_;
  const std::array<const StepTable*, 3> tables = {&history_.progress(), &history_.epochs(), &usage_};
  const std::array<const char*, 3> names = {"progress", "epochs", "usage"};
  json told = history_.facts();
  told.update(job_);
  told["state"] = state_;
  told["generation"] = generation;
  std::string have = std::to_string(generation);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    told[names[i]] = tables[i]->from(held.generation == generation ? held.rows[i] : 0);
    have += fmt::format(".{}", tables[i]->rows());
  }
  told["have"] = have;
  return told;
}

}  // namespace tutti
