#include "sim/measured_runs.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "base/files.h"
#include "base/median.h"
#include "plan/wire_format.h"
#include "tutti/error.h"
#include "tutti/optimizer.h"

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
  std::istringstream lines(read_file(file));
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

/// The median of its steps after warm-up; none where the run was shorter, or did not come to its end.
std::optional<double> steady_step_s(const Run& run) {
  if (run.summary.is_null()) return std::nullopt;
  const auto warm_up = static_cast<std::size_t>(run.summary.value("warm_up_steps", 0));
  if (run.step_s.size() <= warm_up) return std::nullopt;
  return upper_median({run.step_s.begin() + static_cast<std::ptrdiff_t>(warm_up), run.step_s.end()});
}

/// The sizes of its plan: as `auto` chose them, or as the run was given them.
std::string settings_of(const Run& run, const json& config) {
  if (run.plan.contains("search")) {
    const json& search = run.plan.at("search");
    return search.at("candidates").at(search.at("chosen").get<std::size_t>()).at("settings");
  }
  StrategyOptions options;
  for (const StrategyOption& option : strategy_options())
    std::visit([&](auto field) { options.*field = config.value(option.key, options.*field); }, option.field);
  const Strategy* const strategy = known_strategy(run.plan.at("plan").at("strategy").get<std::string>());
  return strategy == nullptr ? "" : describe_sizes(*strategy, options);
}

/// As the engine has them for a run like this one.
CandidateRules rules_of(const json& config, const std::optional<Links>& links) {
  CandidateRules rules;
  rules.servers = config.value("servers", 0);
  const bool compresses = is_compressed(config.value("wire", ""));
  const bool has_servers = links && links->push_pull.is_measured();
  rules.allows = [=](const Strategy& strategy) {
    return (!strategy.uses_servers || has_servers) && (!compresses || strategy.only_all_reduces);
  };
  const std::string name = config.value("optimizer", "");
  const bool needs_whole_tensors = std::any_of(optimizers().begin(), optimizers().end(), [&](const Optimizer& one) {
    return one.name == name && one.needs_whole_tensors;
  });
  if (config.value("clip_norm", 0.0) > 0 || needs_whole_tensors)
    rules.adapt = [](Plan& plan) { plan.barrier = Barrier::optimizer_step, plan.sharded_optimizer = false; };
  return rules;
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
int rank_of(const std::string& name) {
  if (name == kAutoStrategy) return 0;
  const Strategy* const strategy = known_strategy(name);
  return strategy != nullptr && !strategy->overlaps_backward && !strategy->uses_servers ? 1 : 2;
}

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
    const std::optional<double> step_s = steady_step_s(run);
    if (!step_s) return;
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
      if (strategy == kAutoStrategy || !group.links.all_reduce.is_measured()) {
        const LinkCost push_pull = group.links.push_pull;
        group.links = links;
        if (!links.push_pull.is_measured()) group.links.push_pull = push_pull;
      }
      if (links.push_pull.is_measured()) group.links.push_pull = links.push_pull;
    }
    auto& [plan, seconds] = by_strategy[strategy];
    plan = run.plan.at("plan").get<Plan>();
    seconds.push_back(*step_s);
  }

  RunGroup result() const {
    RunGroup complete = group;
    // Every run has measured how long it computes: one alone may have had a bad moment.
    if (alone_s(group.profile) > 0)
      complete.profile = stretched(group.profile, upper_median(alone) / alone_s(group.profile));
    for (const auto& [strategy, measured] : by_strategy) {
      const auto& [plan, seconds] = measured;
      const double step_s = upper_median(seconds);
      const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
      complete.runs.push_back({strategy, plan, step_s, static_cast<int>(seconds.size()), (*most - *least) / step_s});
    }
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

RecordedRun read_recorded_run(const fs::path& file) {
  try {
    const Run run = read_run(file);
    if (run.plan.is_null())
      throw Error("{} holds no plan: the run was shorter than its three profile steps", file.string());
    const json config = run.run.is_null() ? json::object() : run.run.value("config", json::object());
    RecordedRun recorded;
    recorded.plan = run.plan.at("plan");
    recorded.settings = settings_of(run, config);
    recorded.profile = run.plan.at("profile");
    if (run.plan.contains("links")) recorded.links = run.plan.at("links").get<Links>();
    if (config.contains("batch")) recorded.batch = config.at("batch").get<double>();
    recorded.step_s = steady_step_s(run);
    if (run.plan.contains("search"))
      for (const json& one : run.plan.at("search").at("candidates"))
        recorded.tried_s[one.at("strategy").get<std::string>() + " " + one.at("settings").get<std::string>()] =
            one.at("step_s");
    recorded.rules = rules_of(config, recorded.links);
    return recorded;
  } catch (const json::exception& error) {
    throw Error("{}: a record in it is damaged: {}", file.string(), error.what());
  }
}

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
    if (run.strategy == kAutoStrategy || (run.plan.servers > 0 && !group.links.push_pull.is_measured())) continue;
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
