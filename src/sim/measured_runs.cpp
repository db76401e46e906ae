#include "sim/measured_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/median.h"
#include "plan/adapt.h"
#include "plan/wire_format.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "tutti/error.h"
#include "tutti/optimizer.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The records of one run: the last of each kind, and all its steps.
struct Run {
  std::optional<RunRecord> run;
  RunConfig config;
  std::optional<PlanRecord> plan;
  std::optional<SummaryRecord> summary;
  std::vector<double> step_s;
};

Run read_run(const fs::path& file) {
  Run run;
  for (RecordReader reader(file); reader.next();) {
    if (reader.is<RunRecord>()) {
      run.run = reader.as<RunRecord>();
      run.config = run.run->parsed;
    } else if (reader.is<PlanRecord>()) {
      run.plan = reader.as<PlanRecord>();
    } else if (reader.is<SummaryRecord>()) {
      run.summary = reader.as<SummaryRecord>();
    } else if (reader.is<EpochRecord>()) {
      const auto epoch = reader.as<EpochRecord>();
      run.step_s.insert(run.step_s.end(), epoch.step_s.begin(), epoch.step_s.end());
    }
  }
  return run;
}

/// The median of its steps after warm-up; none where the run was shorter, or did not come to its end.
std::optional<double> steady_step_s(const Run& run) {
  if (!run.summary) return std::nullopt;
  const int64_t warm_up = run.summary->warm_up_steps;
  if (static_cast<int64_t>(run.step_s.size()) <= warm_up) return std::nullopt;
  return upper_median({run.step_s.begin() + warm_up, run.step_s.end()});
}

/// The sizes of its plan: as `auto` chose them, or as the run was given them.
std::string settings_of(const Run& run) {
  if (run.plan->search) {
    const SearchRecord& search = *run.plan->search;
    const auto chosen = static_cast<std::size_t>(search.chosen);
    if (chosen >= search.candidates.size()) throw Error("its plan is one that was not tried");
    return search.candidates[chosen].settings;
  }
  StrategyOptions options;
  for (const StrategyOption& option : strategy_options())
    std::visit([&](auto field) { options.*field = run.run->config.value(option.key, options.*field); }, option.field);
  const Strategy* const strategy = known_strategy(run.plan->plan.strategy);
  return strategy == nullptr ? "" : describe_sizes(*strategy, options);
}

/// As the engine has them for a run like this one.
CandidateRules rules_of(const RunConfig& config, const std::optional<Links>& links) {
  CandidateRules rules;
  rules.servers = std::max(0, config.servers);
  const bool compresses = is_compressed(config.wire);
  const bool has_servers = links && links->push_pull.is_measured();
  rules.allows = [=](const Strategy& strategy) {
    return (!strategy.uses_servers || has_servers) && (!compresses || strategy.only_all_reduces);
  };
  PlanNeeds needs;
  needs.clips = config.clip_norm > 0;
  needs.outer_optimizer = config.outer_optimizer;
  needs.whole_tensors = std::any_of(optimizers().begin(), optimizers().end(), [&](const Optimizer& one) {
    return one.name == config.optimizer && one.needs_whole_tensors;
  });
  rules.adapt = [needs](Plan& plan) mutable {
    needs.node_ranks = plan.node_ranks;
    adapt(plan, needs);
  };
  return rules;
}

/// The network's name by the folder of a run that belongs to a sweep; the run itself knows only what it measured.
std::map<std::string, std::string> networks_of_sweep(const fs::path& folder) {
  std::map<std::string, std::string> networks;
  if (!fs::exists(folder / kCellsFile)) return networks;
  for (RecordReader reader(folder / kCellsFile); reader.next();) {
    const Cell cell = reader.as<Cell>();
    if (!cell.config.network.empty()) networks[cell.id] = cell.config.network;
  }
  return networks;
}

/// What has to be equal for two runs to be of one group.
json group_key(const Run& run, const std::string& network) {
  RunConfig same = run.config;
  const RunConfig any;
  same.strategy = same.data = same.transport = same.device_used = "";
  same.workers = any.workers;
  same.servers = any.servers;
  return {network, run.summary->transport, run.run->nodes.size(), same};
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
    const std::string& strategy = run.config.strategy;
    const std::optional<double> step_s = steady_step_s(run);
    if (!step_s) return;
    group.model = run.config.model;
    group.batch = run.config.batch;
    group.ranks = run.config.ranks;
    group.transport = run.summary->transport;
    if (rank_of(strategy) < profile_rank) {
      profile_rank = rank_of(strategy);
      group.profile = run.plan->profile;
    }
    alone.push_back(alone_s(run.plan->profile));
    if (run.plan->links) {
      const Links& links = *run.plan->links;
      if (strategy == kAutoStrategy || !group.links.all_reduce.is_measured()) {
        const LinkCost push_pull = group.links.push_pull;
        group.links = links;
        if (!links.push_pull.is_measured()) group.links.push_pull = push_pull;
      }
      if (links.push_pull.is_measured()) group.links.push_pull = links.push_pull;
    }
    auto& [plan, seconds] = by_strategy[strategy];
    plan = run.plan->plan;
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
  const Run run = read_run(file);
  if (!run.plan) throw Error("{} holds no plan: the run was shorter than its three profile steps", file.string());
  RecordedRun recorded;
  recorded.plan = run.plan->plan;
  try {
    recorded.settings = settings_of(run);
  } catch (const Error& error) {
    throw Error("{}: a record in it is damaged: {}", file.string(), error.what());
  }
  recorded.profile = run.plan->profile;
  recorded.links = run.plan->links;
  if (run.config.batch > 0) recorded.batch = static_cast<double>(run.config.batch);
  recorded.step_s = steady_step_s(run);
  if (run.plan->search)
    for (const TriedPlan& one : run.plan->search->candidates)
      recorded.tried_s[one.strategy + " " + one.settings] = one.step_s;
  recorded.rules = rules_of(run.config, recorded.links);
  return recorded;
}

std::vector<RunGroup> read_run_groups(const std::vector<fs::path>& folders, std::vector<std::string>& left_out) {
  std::map<json, GroupReader> groups;
  for (const fs::path& folder : folders) {
    const auto networks = networks_of_sweep(folder);
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().filename() != kRecordsFile) continue;
      const Run run = read_run(entry->path());
      if (!run.run || !run.plan || !run.summary || run.config.ranks < 2) continue;  // failed, too short, or alone
      const auto network = networks.find(entry->path().parent_path().filename().string());
      std::string name = network == networks.end() ? "" : network->second;
      if (name.empty() && run.config.link_gbps > 0) name = fmt::format("{:g} Gbit/s", run.config.link_gbps);
      GroupReader& reader = groups[group_key(run, name)];
      reader.group.network = name;
      reader.add(run);
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
