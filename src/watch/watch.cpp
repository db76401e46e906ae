#include "watch/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_files.h"
#include "record/record_file.h"
#include "record/run_finder.h"
#include "report/timeline.h"
#include "status/status_report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostKnown = 500, kMostShown = 16;
// A page that draws more than this is no help; https://ui.perfetto.dev takes it.
constexpr std::uintmax_t kMostTraceBytes = 100'000'000;

double modified_s(const fs::path& file) {
  std::error_code ignored;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, ignored);
  return ignored ? 0 : wall_seconds() - std::chrono::duration<double>(age).count();
}

bool is_due(std::optional<Clock::time_point>& last, std::chrono::milliseconds period) {
  const auto now = Clock::now();
  if (last && now - *last < period) return false;
  last = now;
  return true;
}

fs::path folder_of(const fs::path& records) { return fs::absolute(records).parent_path(); }

/// A name that changes when the file does; "" where there is none.
std::string version_of(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  if (error) return "";
  const auto changed = fs::last_write_time(file, error).time_since_epoch();
  return fmt::format("{}-{}", bytes, std::chrono::duration_cast<std::chrono::milliseconds>(changed).count());
}

}  // namespace

Watch::Watch(WatchOptions options) : options_(std::move(options)) {}

void Watch::look_for_runs() {
  if (is_due(jobs_at_, options_.fresh_for)) jobs_.clear();
  if (!is_due(known_at_, options_.known_for)) return;
  known_.clear();
  if (options_.runs.empty())
    know_all();
  else
    know_named();
}

void Watch::know_named() {
  for (const std::string& run : options_.runs) {
    if (find_known(run) != nullptr) continue;
    const fs::path records = run_finder().find(run, options_.runs_folder);
    known_.push_back({run, records, records.empty() ? 0 : modified_s(records), false, true});
    const SeenJob* const job = job_of(known_.back());
    known_.back().is_live = job != nullptr && job->is_live();
  }
}

void Watch::know_all() {
  const RunFinder finder = run_finder();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options_.runs_folder, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    const fs::path records = finder.look(entry.path());
    if (!records.empty()) known_.push_back({entry.path().filename().string(), records, modified_s(records)});
  }
  std::sort(known_.begin(), known_.end(),
            [](const Known& a, const Known& b) { return std::tie(b.modified, a.key) < std::tie(a.modified, b.key); });
  if (known_.size() > kMostKnown) known_.resize(kMostKnown);
  const auto jobs = jobs_.try_emplace(options_.runs_folder, read_jobs(options_.runs_folder)).first;
  bool is_any_live = false;
  for (const SeenJob& job : jobs->second) {
    if (!job.is_live()) continue;
    for (Known& known : known_)
      if (known.key == fs::path(job.run()).filename() && fs::equivalent(folder_of(known.records), job.run(), ignored))
        is_any_live = known.is_live = known.is_suggested = true;
  }
  if (!is_any_live && !known_.empty()) known_.front().is_suggested = true;
}

const Watch::Known* Watch::find_known(const std::string& key) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.key == key; });
  return found == known_.end() ? nullptr : &*found;
}

/// Its ranks, from the folder of runs or from the one that this run lies in.
const SeenJob* Watch::job_of(const Known& known) {
  const std::string run = known.records.empty() ? known.key : folder_of(known.records).string();
  std::vector<fs::path> places = {options_.runs_folder};
  if (!known.records.empty()) places.push_back(folder_of(known.records).parent_path());
  for (const fs::path& place : places) {
    auto jobs = jobs_.find(place);
    if (jobs == jobs_.end()) jobs = jobs_.emplace(place, read_jobs(place)).first;
    if (const SeenJob* const job = find_job(jobs->second, run, place)) return job;
  }
  return nullptr;
}

json Watch::show(const Known& known, const HeldRows& held) {
  Shown& shown = shown_[known.key];
  if (is_due(shown.looked_at, options_.fresh_for)) shown.run.look(known.records, job_of(known), wall_seconds());
  json told = shown.run.told(held);
  told["key"] = known.key;
  if (!known.records.empty()) {
    told["folder"] = folder_of(known.records).string();
    told["timeline"] = version_of(folder_of(known.records) / "trace.json");
  }
  return told;
}

json Watch::state(const std::vector<Wanted>& wanted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  look_for_runs();
  json state = {{"now", wall_seconds()}, {"known", json::array()}, {"runs", json::array()}};
  for (const Known& known : known_)
    state["known"].push_back(
        {{"key", known.key}, {"modified", known.modified}, {"live", known.is_live}, {"suggested", known.is_suggested}});
  for (const Wanted& one : wanted) {
    if (state["runs"].size() == kMostShown) break;
    if (const Known* const known = find_known(one.key)) state["runs"].push_back(show(*known, one.held));
  }
  return state;
}

json Watch::timeline(const std::string& key) {
  fs::path file;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    look_for_runs();
    const Known* const known = find_known(key);
    if (known == nullptr || known->records.empty()) throw Error("no run '{}'", key);
    file = folder_of(known->records) / "trace.json";
  }
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error) throw Error("the run has no {}", file.string());
  if (bytes > kMostTraceBytes)
    throw Error("{} is too large for this page; https://ui.perfetto.dev shows it", file.string());
  return timeline_from_trace(read_json_file(file));
}

}  // namespace tutti
