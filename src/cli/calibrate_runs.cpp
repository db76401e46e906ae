#include "cli/calibrate_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/hold_out.h"
#include "cli/json_output.h"
#include "sim/fit.h"
#include "sim/measured_runs.h"
#include "sim/own_engine.h"

namespace tutti {
namespace {

using nlohmann::json;

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

/// Of absolute errors.
struct RunScore {
  std::size_t runs = 0;
  double mean = 0, worst_tenth = 0, worst = 0;
};

RunScore score_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  double sum = 0;
  for (double& error : errors) sum += error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const std::size_t tenth = std::min(errors.size() - 1, errors.size() * 9 / 10);
  return {errors.size(), sum / static_cast<double>(errors.size()), errors[tenth], errors.back()};
}

std::string describe(const RunScore& score) {
  if (score.runs == 0) return "no runs";
  return fmt::format("{} runs: mean error {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %", score.runs,
                     score.mean * 100, score.worst_tenth * 100, score.worst * 100);
}

json to_json(const RunScore& score) {
  if (score.runs == 0) return {};
  return {{"rows", score.runs},
          {"mean_error", score.mean},
          {"percentile_90_error", score.worst_tenth},
          {"worst_error", score.worst}};
}

json costs_as_json(const EngineCosts& costs) {
  json parameters = json::array();
  for (std::size_t i = 0; i < engine_knobs().size(); ++i) {
    const EngineKnob& knob = engine_knobs()[i];
    parameters.push_back(fitted_parameter(knob.name, costs.fit.parameters[i], knob.scale, knob.unit));
    parameters.back()["place"] = costs.place;
  }
  return parameters;
}

json as_json(const std::vector<Scored>& rows) {
  json list = json::array();
  for (const Scored& row : rows) {
    const RunPrediction& one = row.prediction;
    list.push_back({{"model", one.group->model},
                    {"place", one.group->place()},
                    {"ranks", one.group->ranks},
                    {"strategy", one.run->strategy},
                    {"measured_s", one.run->step_s},
                    {"simulated_s", one.step_s},
                    {"error", one.error()},
                    {"not_fitted_s", row.before_s},
                    {"held_out", row.is_held_out}});
  }
  return list;
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

json fitted_parameter(const std::string& name, const FittedParameter& found, double scale, const std::string& unit) {
  return {{"parameter", name},
          {"value", found.value * scale},
          {"unit", unit},
          {"uncertainty", found.is_identifiable() ? json(found.uncertainty) : json()},
          {"at_bound", found.at_bound}};
}

int calibrate_runs(const std::vector<std::string>& folders, const std::vector<std::string>& held_out, bool all_rows,
                   bool is_json) {
  std::vector<std::string> left_out;
  const std::vector<RunGroup> groups = read_run_groups({folders.begin(), folders.end()}, left_out);
  for (const std::string& group : left_out)
    fmt::print(is_json ? stderr : stdout, "left out, for no run of it measured its links: {}\n", group);
  std::map<std::string, std::vector<const RunGroup*>> by_place;
  std::set<std::string> known;
  for (const RunGroup& group : groups) {
    const Names names = names_of(group);
    known.insert(names.begin(), names.end());
    if (!is_held_out(names, held_out)) by_place[group.place()].push_back(&group);
  }
  check_held_out(held_out, known);
  std::map<std::string, Software> software;
  json parameters = json::array();
  if (!is_json) fmt::print("What the engine costs, apart from computation and messages alone, by place:\n");
  for (const auto& [place, members] : by_place) {
    const EngineCosts costs = fit_engine_costs(members);
    if (!is_json) print_costs(costs);
    for (const json& parameter : costs_as_json(costs)) parameters.push_back(parameter);
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
  std::vector<double> errors, out_errors, before_errors;
  for (const Scored& row : rows) {
    (row.is_held_out ? out_errors : errors).push_back(row.prediction.error());
    before_errors.push_back(row.before_s / row.prediction.run->step_s - 1);
  }
  const RunScore before = score_of(before_errors), fitted = score_of(errors), out = score_of(out_errors);
  if (is_json) {
    print_json({{"parameters", parameters},
                {"not_fitted", to_json(before)},
                {"fitted", to_json(fitted)},
                {"held_out", to_json(out)},
                {"rows", as_json(rows)}});
    return 0;
  }
  if (all_rows) print_rows(rows);
  fmt::print("\nnothing fitted, {}\n", describe(before));
  fmt::print("fitted, {}\n", describe(fitted));
  if (!held_out.empty()) fmt::print("held out (*), {}\n", describe(out));
  print_auto(groups);
  return 0;
}

}  // namespace tutti
