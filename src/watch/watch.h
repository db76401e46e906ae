#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "status/status_files.h"
#include "watch/watched_run.h"

namespace tutti {

struct WatchOptions {
  std::vector<std::string> runs;  // names or folders; empty: those of runs_folder
  std::filesystem::path runs_folder = "runs";
  /// However many pages ask, files are read once in so long, and runs are looked for.
  std::chrono::milliseconds fresh_for{400}, known_for{2000};
};

/// What `tutti watch` shows, as JSON for its page: runs that go on, that are over, and that have not begun. Any thread.
class Watch {
 public:
  explicit Watch(WatchOptions options);

  struct Wanted {
    std::string key;  // of a known run
    HeldRows held;
  };
  /// {"now", "known": [{"key", "modified", "live", "suggested"}…], "runs": [told() and "key" …]}. Of the known runs a
  /// page begins with those suggested. What is wanted and not known is left out.
  nlohmann::json state(const std::vector<Wanted>& wanted);
  /// One step of the run's trace as timeline_from_trace() makes it. Throws Error where there is none, or no trace in
  /// it.
  nlohmann::json timeline(const std::string& key);

 private:
  struct Known {
    std::string key;
    std::filesystem::path records;  // empty: not there yet
    double modified = 0;            // seconds since 1970
    bool is_live = false, is_suggested = false;
  };
  struct Shown {
    WatchedRun run;
    std::optional<Clock::time_point> looked_at;
  };

  void look_for_runs();
  void know_named();
  void know_all();
  const Known* find_known(const std::string& key) const;
  const SeenJob* job_of(const Known& known);
  nlohmann::json show(const Known& known, const HeldRows& held);

  const WatchOptions options_;
  std::mutex mutex_;  // all that follows
  std::vector<Known> known_;
  std::optional<Clock::time_point> known_at_, jobs_at_;
  std::map<std::filesystem::path, std::vector<SeenJob>> jobs_;  // by the folder that holds the runs
  std::map<std::string, Shown> shown_;
};

}  // namespace tutti
