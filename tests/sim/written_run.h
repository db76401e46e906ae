#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/profiles.h"
#include "tutti/strategy.h"

namespace tutti {

/// 100 µs per message and 1 GB/s, measured.
inline Links measured_links() {
  Links links;
  std::vector<LinkSample> samples;
  for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4)
    samples.push_back({bytes, 100e-6 + 1e-9 * static_cast<double>(bytes)});
  links.all_reduce = fit_link_cost(samples);
  return links;
}

/// Computation about as long as communication.
inline Profile some_profile() {
  Profile profile = profile_of({1'000'000, 2'000'000, 500'000, 100});
  for (GradientProfile& gradient : profile.gradients) {
    gradient.ready_s *= 4;
    gradient.needed_s *= 4;
  }
  profile.forward_s *= 4;
  profile.backward_s *= 4;
  return profile;
}

/// Writes the records of a run of two ranks whose steps took `step_s` after a slow start. `auto` has tried `wfbp` and
/// chosen `buckets`.
inline void write_run(const std::filesystem::path& folder, const std::string& strategy, double step_s,
                      bool with_links = true, const nlohmann::json& more_config = nlohmann::json::object()) {
  using nlohmann::json;
  const Profile profile = some_profile();
  StrategyOptions options;
  options.bucket_bytes = 4 << 20;
  const bool is_auto = strategy == "auto";
  const Plan plan = find_strategy(is_auto ? "buckets" : strategy).make_plan(profile, measured_links(), 2, options);
  json plan_record = {{"record", "plan"}, {"profile", profile}, {"plan", plan}};
  if (with_links) plan_record["links"] = measured_links();
  if (is_auto)
    plan_record["search"] = {{"chosen", 1},
                             {"candidates",
                              {{{"strategy", "wfbp"}, {"settings", ""}, {"step_s", 2 * step_s}},
                               {{"strategy", "buckets"}, {"settings", "--bucket-mb 4"}, {"step_s", step_s}}}}};
  json config = {{"strategy", strategy},
                 {"model", "some-net"},
                 {"batch", 8},
                 {"ranks", 2},
                 {"bucket_bytes", is_auto ? 25 << 20 : options.bucket_bytes}};
  config.update(more_config);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "records.jsonl")
      << json({{"record", "run"}, {"config", config}, {"nodes", json::array({json::object()})}}) << '\n'
      << plan_record << '\n'
      << json({{"record", "epoch"}, {"step_s", {9.0, 8.0, step_s, step_s * 1.1, step_s * 0.9}}}) << '\n'
      << json({{"record", "summary"}, {"transport", "shm"}, {"warm_up_steps", 2}}) << '\n';
}

}  // namespace tutti
