#include "sim/measured_runs.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/median.h"
#include "sim/own_engine.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The records of one run: the last of each kind, and all its steps.
struct Run {
  json run, plan, summary;
  std::vector<double> step_s;
};

Run read_run(const fs::path& file) {
  Run run;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;  // cut off by a crash: what is missing is noticed below
    const std::string kind = record.value("record", "");
    if (kind == "run") run.run = record;
    if (kind == "plan") run.plan = record;
    if (kind == "summary") run.summary = record;
    if (kind == "epoch")
      for (const json& seconds : record.at("step_s")) run.step_s.push_back(seconds);
  }
  return run;
}

/// The network's name by the folder of a run that belongs to a sweep; the run itself knows only what it measured.
std::map<std::string, std::string> networks_of_sweep(const fs::path& folder) {
  std::map<std::string, std::string> networks;
  std::ifstream lines(folder / "cells.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const json cell = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (cell.is_object() && cell.contains("config") && cell.at("config").contains("network"))
      networks[cell.value("cell", "")] = cell.at("config").at("network").get<std::string>();
  }
  return networks;
}

/// What has to be equal for two runs to be of one group.
json group_key(const Run& run, const std::string& network) {
  const json& config = run.run.at("config");
  json key = {network, run.summary.at("transport"), run.run.at("nodes").size()};
  for (const char* name : {"model", "width", "depth", "tokens", "batch", "accumulate", "ranks", "optimizer", "wire",
                           "clip_norm", "device", "precision", "threads", "link_gbps", "link_startup_us", "by_node"})
    key.push_back(config.value(name, json()));
  return key;
}

/// Which run speaks for its group: the profile of `auto` is of more steps; without transfers beside it `bsp`'s is best.
int rank_of(const std::string& strategy) { return strategy == "auto" ? 0 : strategy == "bsp" ? 1 : 2; }

/// Forward, backward and the rest of a step without transfers.
double alone_s(const Profile& profile) {
  return profile.rest_s + profile.forward_s + profile.backward_s + profile.update_s;
}

/// The same profile as if everything took `factor` times as long.
Profile stretched(Profile profile, double factor) {
  for (GradientProfile& gradient : profile.gradients) {
    gradient.ready_s *= factor;
    gradient.needed_s *= factor;
  }
  profile.forward_s *= factor;
  profile.backward_s *= factor;
  profile.update_s *= factor;
  profile.rest_s *= factor;
  return profile;
}

struct GroupReader {
  RunGroup group;
  int profile_rank = 9;
  std::vector<double> alone;  // of every run's own profile
  std::map<std::string, std::pair<Plan, std::vector<double>>> by_strategy;

  void add(const Run& run) {
    const json& config = run.run.at("config");
    const std::string strategy = config.at("strategy");
    const auto warm_up = static_cast<std::size_t>(run.summary.value("warm_up_steps", 0));
    if (run.step_s.size() <= warm_up) return;
    group.model = config.at("model");
    group.batch = config.at("batch");
    group.ranks = config.at("ranks");
    group.transport = run.summary.at("transport");
    if (rank_of(strategy) < profile_rank) {
      profile_rank = rank_of(strategy);
      group.profile = run.plan.at("profile").get<Profile>();
    }
    alone.push_back(alone_s(run.plan.at("profile").get<Profile>()));
    if (run.plan.contains("links")) {
      const Links links = run.plan.at("links");
      if (strategy == "auto" || !group.links.all_reduce.is_measured()) {
        const LinkCost push_pull = group.links.push_pull;
        group.links = links;
        if (!links.push_pull.is_measured()) group.links.push_pull = push_pull;
      }
      if (links.push_pull.is_measured()) group.links.push_pull = links.push_pull;
    }
    auto& [plan, seconds] = by_strategy[strategy];
    plan = run.plan.at("plan").get<Plan>();
    seconds.push_back(upper_median({run.step_s.begin() + static_cast<std::ptrdiff_t>(warm_up), run.step_s.end()}));
  }

  RunGroup result() const {
    RunGroup complete = group;
    // Every run has measured how long it computes: one alone may have had a bad moment.
    if (alone_s(group.profile) > 0)
      complete.profile = stretched(group.profile, upper_median(alone) / alone_s(group.profile));
    for (const auto& [strategy, measured] : by_strategy)
      complete.runs.push_back(
          {strategy, measured.first, upper_median(measured.second), static_cast<int>(measured.second.size())});
    return complete;
  }
};

/// Its gradients in the order of the plan's slots: another run's order may differ a little.
Profile arranged(const Profile& profile, const Plan& plan) {
  Profile result = profile;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    const auto found = std::find_if(profile.gradients.begin(), profile.gradients.end(), [&](const GradientProfile& g) {
      return g.parameter == plan.slots[slot].parameter;
    });
    if (found == profile.gradients.end()) throw Error("a plan has '{}', its profile not", plan.slots[slot].name);
    result.gradients.at(slot) = *found;
  }
  return result;
}

Software with_values(const std::vector<double>& values) {
  Software software = engine_software();
  for (std::size_t i = 0; i < values.size(); ++i) software.*engine_knobs()[i].field = values[i];
  return software;
}

}  // namespace

std::vector<RunGroup> read_run_groups(const std::vector<fs::path>& folders, std::vector<std::string>& left_out) {
  std::map<json, GroupReader> groups;
  for (const fs::path& folder : folders) {
    const auto networks = networks_of_sweep(folder);
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().filename() != "records.jsonl") continue;
      try {
        const Run run = read_run(entry->path());
        if (run.run.is_null() || run.plan.is_null() || run.summary.is_null()) continue;  // failed, or too short
        if (run.run.at("config").at("ranks").get<int>() < 2) continue;
        const auto network = networks.find(entry->path().parent_path().filename().string());
        std::string name = network == networks.end() ? "" : network->second;
        const double pretended_gbps = run.run.at("config").value("link_gbps", 0.0);
        if (name.empty() && pretended_gbps > 0) name = fmt::format("{:g} Gbit/s", pretended_gbps);
        GroupReader& reader = groups[group_key(run, name)];
        reader.group.network = name;
        reader.add(run);
      } catch (const json::exception& problem) {
        throw Error("{} is not as `tutti train` writes it: {}", entry->path().string(), problem.what());
      }
    }
    if (error) throw UsageError("cannot read the folder {}: {}", folder.string(), error.message());
  }
  std::vector<RunGroup> result;
  for (const auto& [key, reader] : groups) {
    const RunGroup group = reader.result();
    if (group.links.all_reduce.is_measured())
      result.push_back(group);
    else
      left_out.push_back(fmt::format("{} on {} ranks over {}", group.model, group.ranks, group.place()));
  }
  if (result.empty())
    throw UsageError("no run of several ranks that measured its links is there: one with --strategy auto does");
  return result;
}

std::vector<RunPrediction> predict_runs(const RunGroup& group, const Software& software) {
  const Cluster cluster = cluster_of_run(group.links, group.ranks, software);
  std::vector<RunPrediction> predictions;
  for (const MeasuredRun& run : group.runs) {
    if (run.strategy == "auto" || (run.plan.servers > 0 && !group.links.push_pull.is_measured())) continue;
    predictions.push_back({&group, &run, simulate_run(run.plan, arranged(group.profile, run.plan), cluster).step_s});
  }
  return predictions;
}

const std::vector<EngineKnob>& engine_knobs() {
  static const std::vector<EngineKnob> knobs = {
      {"start of a transfer", "µs", 1e6, 20e-6, 1e-7, 2e-3, &Software::launch_s},
      {"computation, slower beside transfers", "%", 100, 0.05, 1e-4, 3, &Software::slowdown},
      {"transfers, slower beside computation", "%", 100, 0.05, 1e-4, 5, &Software::transfer_slowdown},
  };
  return knobs;
}

EngineCosts fit_engine_costs(const std::vector<const RunGroup*>& groups) {
  std::vector<FitParameter> parameters;
  for (const EngineKnob& knob : engine_knobs()) parameters.push_back({knob.name, knob.start, knob.lower, knob.upper});
  const auto residuals = [&](const std::vector<double>& values) {
    const Software software = with_values(values);
    std::vector<double> errors;
    for (const RunGroup* group : groups)
      for (const RunPrediction& prediction : predict_runs(*group, software)) errors.push_back(prediction.error());
    return errors;
  };
  EngineCosts costs;
  costs.place = groups.at(0)->place();
  costs.fit = fit_parameters(parameters, residuals);
  std::vector<double> values;
  for (const FittedParameter& parameter : costs.fit.parameters) values.push_back(parameter.value);
  costs.software = with_values(values);
  return costs;
}

}  // namespace tutti
