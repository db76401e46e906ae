#include "cli/calibrate_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/hold_out.h"
#include "sim/measured_runs.h"
#include "sim/own_engine.h"

namespace tutti {
namespace {

struct Scored {
  RunPrediction prediction;
  double before_s = 0;  // predicted with nothing fitted
  bool is_held_out = false;
};

Names names_of(const RunGroup& group) {
  Names names = {group.model, group.transport, std::to_string(group.ranks)};
  if (!group.network.empty()) names.push_back(group.network);
  return names;
}

/// Mean and 90th percentile of absolute errors, in words.
std::string describe(std::vector<double> errors) {
  if (errors.empty()) return "no runs";
  double sum = 0;
  for (double& error : errors) sum += error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const std::size_t tenth = std::min(errors.size() - 1, errors.size() * 9 / 10);
  return fmt::format("{} runs: mean error {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %", errors.size(),
                     sum / static_cast<double>(errors.size()) * 100, errors[tenth] * 100, errors.back() * 100);
}

void print_costs(const EngineCosts& costs) {
  fmt::print("{}:\n", costs.place);
  for (std::size_t i = 0; i < engine_knobs().size(); ++i) {
    const EngineKnob& knob = engine_knobs()[i];
    const FittedParameter& found = costs.fit.parameters[i];
    fmt::print("  {:<38} {:>8.4g} {:<3} {}\n", knob.name, found.value * knob.scale, knob.unit,
               found.at_bound            ? "at its bound"
               : found.is_identifiable() ? fmt::format("± {:.0f} %", found.uncertainty * 100)
                                         : "not identifiable");
  }
}

void print_rows(const std::vector<Scored>& rows) {
  fmt::print("\n  {:<12} {:<16} {:>5}  {:<17} {:>11} {:>11} {:>8} {:>10}\n", "model", "place", "ranks", "strategy",
             "measured", "predicted", "error", "not fitted");
  for (const Scored& row : rows) {
    const RunPrediction& one = row.prediction;
    fmt::print("{} {:<12} {:<16} {:>5}  {:<17} {:>8.2f} ms {:>8.2f} ms {:>+6.1f} % {:>+8.1f} %\n",
               row.is_held_out ? "*" : " ", one.group->model, one.group->place(), one.group->ranks, one.run->strategy,
               one.run->step_s * 1e3, one.step_s * 1e3, one.error() * 100, (row.before_s / one.run->step_s - 1) * 100);
  }
}

/// How `auto` fared against the best fixed strategy of its group.
void print_auto(const std::vector<RunGroup>& groups) {
  bool is_first = true;
  for (const RunGroup& group : groups) {
    const auto chosen = std::find_if(group.runs.begin(), group.runs.end(),
                                     [](const MeasuredRun& run) { return run.strategy == kAutoStrategy; });
    const MeasuredRun* best = nullptr;
    for (const MeasuredRun& run : group.runs)
      if (run.strategy != kAutoStrategy && (best == nullptr || run.step_s < best->step_s)) best = &run;
    if (chosen == group.runs.end() || best == nullptr) continue;
    if (is_first)
      fmt::print("\n  {:<12} {:<16} {:>5}  {:<24} {:<24} {:>10}  {}\n", "model", "place", "ranks", "auto", "best fixed",
                 "auto over", "runs of one differ by");
    is_first = false;
    fmt::print("  {:<12} {:<16} {:>5}  {:<24} {:<24} {:>+8.1f} %  {:.1f} % and {:.1f} % (of {})\n", group.model,
               group.place(), group.ranks, fmt::format("{} {:.2f} ms", chosen->plan.strategy, chosen->step_s * 1e3),
               fmt::format("{} {:.2f} ms", best->strategy, best->step_s * 1e3),
               (chosen->step_s / best->step_s - 1) * 100, chosen->spread * 100, best->spread * 100, best->runs);
  }
}

}  // namespace

int calibrate_runs(const std::vector<std::string>& folders, const std::vector<std::string>& held_out, bool all_rows) {
  std::vector<std::string> left_out;
  const std::vector<RunGroup> groups = read_run_groups({folders.begin(), folders.end()}, left_out);
  for (const std::string& group : left_out) fmt::print("left out, for no run of it measured its links: {}\n", group);
  std::map<std::string, std::vector<const RunGroup*>> by_place;
  std::set<std::string> known;
  for (const RunGroup& group : groups) {
    const Names names = names_of(group);
    known.insert(names.begin(), names.end());
    if (!is_held_out(names, held_out)) by_place[group.place()].push_back(&group);
  }
  check_held_out(held_out, known);
  std::map<std::string, Software> software;
  fmt::print("What the engine costs, apart from computation and messages alone, by place:\n");
  for (const auto& [place, members] : by_place) {
    const EngineCosts costs = fit_engine_costs(members);
    print_costs(costs);
    software[place] = costs.software;
  }
  std::vector<Scored> rows;
  for (const RunGroup& group : groups) {
    const auto found = software.find(group.place());
    const bool is_out = is_held_out(names_of(group), held_out);
    const auto fitted = predict_runs(group, found == software.end() ? engine_software() : found->second);
    const auto before = predict_runs(group, engine_software());
    for (std::size_t i = 0; i < fitted.size(); ++i) rows.push_back({fitted[i], before[i].step_s, is_out});
  }
  if (all_rows) print_rows(rows);
  std::vector<double> errors, out_errors, before_errors;
  for (const Scored& row : rows) {
    (row.is_held_out ? out_errors : errors).push_back(row.prediction.error());
    before_errors.push_back(row.before_s / row.prediction.run->step_s - 1);
  }
  fmt::print("\nnothing fitted, {}\n", describe(before_errors));
  fmt::print("fitted, {}\n", describe(errors));
  if (!held_out.empty()) fmt::print("held out (*), {}\n", describe(out_errors));
  print_auto(groups);
  return 0;
}

}  // namespace tutti
