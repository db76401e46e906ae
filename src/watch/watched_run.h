#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "status/status_files.h"
#include "watch/run_history.h"
#include "watch/step_table.h"

namespace tutti {

/// What a page has of a run already: it is told the rest. It has to forget what it has where the generation is another
/// one.
struct HeldRows {
  uint64_t generation = 0;
  std::array<std::size_t, 3> rows = {};  // of "progress", "epochs" and "usage"
};
/// "17.120.2.40", as told() says it under "have". Anything else is nothing.
HeldRows parse_held_rows(const std::string& text);

/// A run that a page shows: what its records say, and what its ranks are doing now. One thread at a time.
class WatchedRun {
 public:
  WatchedRun();

  /// Looks again. `job` are its ranks, where they have been seen; `now_s` is the time in seconds since 1970.
  void look(const std::filesystem::path& records, const SeenJob* job, double now_s);

  /// Everything for a page that holds some of it: "state", the facts of RunHistory, "ranks" and "held_up_by" as
  /// `tutti status --json` has them, and the tables "progress", "epochs" and "usage".
  nlohmann::json told(const HeldRows& held) const;

 private:
  struct Used {
    uint64_t process_start = 0;
    double updated = 0, cpu_s = 0;
  };
  void measure_usage(const SeenJob& job);
  std::string state(const SeenJob* job) const;

  RunHistory history_;
  /// Processor cores in use, by what ranks say of themselves; only while somebody looks.
  StepTable usage_;
  uint64_t first_generation_, usage_changes_ = 0;
  std::map<int, Used> used_;     // when usage was measured last
  std::map<int, double> cores_;  // in use since then, by rank
  double measured_s_ = 0;
  nlohmann::json job_ = nlohmann::json::object();
  std::string state_ = "missing";
};

}  // namespace tutti
