#include "cli/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "cli/option_arguments.h"
#include "cli/plan_cluster.h"
#include "record/run_finder.h"
#include "sim/measured_runs.h"
#include "sim/own_engine.h"
#include "sim/planner.h"
#include "tutti/error.h"
#include "tutti/links.h"
#include "tutti/optimizer.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct PlanArguments {
  std::string run;
  std::string runs_folder = "runs";
  TrainOptions strategy;  // of these, the strategy and its sizes
  int ranks = 0;          // 0: the run's
  ClusterPlanArguments cluster;
};

RecordedRun recorded_run(const PlanArguments& arguments) {
  const fs::path file = run_finder().find(arguments.run, arguments.runs_folder);
  if (file.empty()) throw UsageError(run_finder().complaint(arguments.run, arguments.runs_folder));
  return read_recorded_run(file);
}

int run_on_cluster(const PlanArguments& arguments, bool has_batch) {
  ClusterPlanArguments cluster = arguments.cluster;
  if (!arguments.run.empty()) {
    if (has_batch) throw UsageError("--batch: the profile of a run is that of its own batch; leave it out");
    const RecordedRun run = recorded_run(arguments);
    cluster.measured = run.profile;
    if (run.batch) cluster.batch = *run.batch;
    if (cluster.model.empty()) cluster.model = "the profile of " + arguments.run;
  }
  if (cluster.cluster.empty())
    throw UsageError("--model needs --cluster: one of `tutti plan --cluster list`, or a file");
  if (cluster.model.empty() && cluster.cluster != "list")
    throw UsageError("--cluster needs --model, or a run whose profile is taken");
  return plan_cluster(cluster);
}

/// The run's own plan, the one asked for, and every strategy with its best sizes: all simulated as `--strategy auto`
/// does it.
void print_predictions(const RecordedRun& run, const std::optional<PlannedStrategy>& asked, int ranks,
                       const CandidateRules& rules) {
  const Cluster cluster = cluster_of_run(*run.links, ranks);
  const bool has_run = ranks == run.plan.ranks;
  std::vector<PlannedStrategy> rows;
  std::vector<std::string> labels;
  const auto add = [&](const PlannedStrategy& row, const char* how) {
    rows.push_back(row);
    labels.push_back(row.name + how);
  };
  if (has_run) {
    PlannedStrategy own;
    own.name = run.plan.strategy;
    own.settings = run.settings;
    own.plan = run.plan;
    own.step = simulate_run(run.plan, run.profile, cluster);
    add(own, ", as run");
  }
  if (asked && rules.allows(find_strategy(asked->name))) add(*asked, ", as asked");
  for (const PlannedStrategy& one : plan_run(run.profile, *run.links, ranks, rules)) add(one, "");
  std::vector<std::optional<double>> measured_s(rows.size());
  for (std::size_t i = 0; has_run && i < rows.size(); ++i) {
    const auto tried = run.tried_s.find(rows[i].name + " " + rows[i].settings);
    if (i == 0)
      measured_s[i] = run.step_s;
    else if (tried != run.tried_s.end())
      measured_s[i] = tried->second;
  }
  // Of the run's own plan, all its steps say more than those in which auto tried it.
  std::vector<std::optional<double>> deciding_s = measured_s;
  for (std::size_t i = 1; has_run && i < rows.size(); ++i)
    if (run.step_s && rows[i].name == rows[0].name && rows[i].settings == rows[0].settings) deciding_s[i] = run.step_s;
  const PlannedStrategy& best = best_of(rows, deciding_s);
  const std::optional<double>& best_measured_s = measured_s[static_cast<std::size_t>(&best - rows.data())];

  fmt::print("simulated on {} ranks, each strategy with the sizes found best for it:\n", ranks);
  if (!has_run)
    fmt::print("(links and computation as measured with {} ranks: {} may well be slower)\n", run.plan.ranks, ranks);
  fmt::print("  {:<26} {:>9} {:>11} {:>11} {:>11}  {}\n", "strategy", "transfers", "step", "exposed", "measured",
             "sizes");
  const auto ms = [](double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); };
  for (std::size_t i = 0; i < rows.size(); ++i)
    fmt::print("{} {:<26} {:>9} {:>11} {:>11} {:>11}  {}\n", &rows[i] == &best ? "*" : " ", labels[i],
               rows[i].plan.transfers.size(), ms(rows[i].step.step_s), ms(rows[i].step.exposed_s),
               measured_s[i] ? ms(*measured_s[i]) : "", rows[i].settings);
  fmt::print("\n{}", kBestMeans);
  if (has_run)
    fmt::print("measured: the median of the run's steps after warm-up{}.\n",
               run.tried_s.empty() ? "" : "; of others, of the steps in which auto tried them");
  if (std::any_of(measured_s.begin(), measured_s.end(), [](const auto& step_s) { return step_s.has_value(); }))
    fmt::print("What was measured decides; others count as predicted, times what measured steps took longer.\n");
  fmt::print("\n{}", reasons(best, cluster, ranks));
  if (!has_run || &best == &rows[0]) return;
  if (best_measured_s && run.step_s)
    fmt::print("The run's own plan took {:.1f} % longer, as measured.\n", (*run.step_s / *best_measured_s - 1) * 100);
  else if (rows[0].step.step_s > best.step.step_s)
    fmt::print("The run's own plan is predicted to take {:.1f} % longer.\n",
               (rows[0].step.step_s / best.step.step_s - 1) * 100);
}

int run(const PlanArguments& arguments, bool has_strategy, bool has_batch) {
  if (!arguments.cluster.cluster.empty() || !arguments.cluster.model.empty())
    return run_on_cluster(arguments, has_batch);
  if (arguments.run.empty())
    throw UsageError("what to plan? A run, or --model and --cluster; `tutti plan --help` shows both");
  const RecordedRun run = recorded_run(arguments);
  const Profile& profile = run.profile;
  const int ranks = arguments.ranks > 0 ? arguments.ranks : run.plan.ranks;
  StrategyOptions options = arguments.strategy.strategy_options;
  CandidateRules rules = run.rules;
  if (options.servers > 0)
    rules.servers = options.servers;
  else
    options.servers = rules.servers;
  std::optional<PlannedStrategy> asked;
  if (has_strategy || ranks != run.plan.ranks) {
    const Strategy& strategy = find_strategy(has_strategy ? arguments.strategy.strategy : run.plan.strategy);
    asked = plan_run(strategy, options, profile, run.links.value_or(Links{}), ranks, rules);
    check_plan(asked->plan);
  }
  fmt::print("{}", describe(asked ? asked->plan : run.plan));
  fmt::print("measured on rank 0: forward {:.2f} ms, backward {:.2f} ms, update {:.2f} ms, the rest {:.2f} ms\n",
             profile.forward_s * 1e3, profile.backward_s * 1e3, profile.update_s * 1e3, profile.rest_s * 1e3);
  if (!run.links) {
    fmt::print(
        "The run did not measure its links; one with --strategy mgwfbp or bytescheduler does, and makes predictions "
        "possible.\n");
    return 0;
  }
  const LinkCost& links = run.links->all_reduce;
  fmt::print("measured all-reduce: {:.1f} µs + {:.3f} ns per byte (residual {:.0f} %, {} sizes)\n\n",
             links.startup_s * 1e6, links.per_byte_s * 1e9, links.residual * 100, links.samples.size());
  print_predictions(run, asked, ranks, rules);
  if (!run.links->push_pull.is_measured())
    fmt::print("A run with --strategy bytescheduler-ps also measures what parameter servers take.\n");
  return 0;
}

}  // namespace

std::function<int()> add_plan_command(CLI::App& program) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = program.add_subcommand("plan", "show the plan of a run, or predict throughput on a cluster");
  command->add_option("run", arguments->run, "a run's name or folder; with --cluster, its measured profile is used");
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  command->add_option("--ranks", arguments->ranks,
                      "for another number of ranks (with the links as they were measured)");
  command->add_flag("--print", "print the plan as a table (this is what it does)");
  add_options(*command, strategy_option_table(arguments->strategy, "Strategy of a run", /*offers_auto=*/false));
  const auto group = [](CLI::Option* option) { option->group("On a cluster"); };
  ClusterPlanArguments& cluster = arguments->cluster;
  group(command->add_option("--model", cluster.model, "its profile is computed from its layers and the device"));
  group(command->add_option("--cluster", cluster.cluster,
                            "a shipped one (`list` shows them), a YAML file, or the links file of tutti probe"));
  group(command->add_option("--gpus", cluster.sizes, "numbers of ranks: 4,8,16")
            ->delimiter(',')
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  group(command->add_option("--batch", cluster.batch, "samples per rank")->capture_default_str());
  group(command->add_option("--tokens", cluster.tokens, "length of texts; 0: the model's usual one"));
  group(command->add_option("--accumulate", cluster.accumulate, "micro-batches per step")->capture_default_str());
  group(command->add_option("--optimizer", cluster.optimizer, fmt::format("{}", fmt::join(optimizer_names(), ", ")))
            ->capture_default_str());
  group(command->add_option("--nodes", cluster.nodes, "nodes, instead of as many as the file says"));
  group(command->add_option("--below", cluster.efficiency_bound, "look for the size whose efficiency is under this")
            ->capture_default_str());
  group(command->add_flag("--brief", cluster.brief, "the tables alone"));
  group(command->add_option("--trace", cluster.trace, "write the predicted timeline to this file (Chrome trace)"));
  group(command->add_option("--records", cluster.records, "write simulated records to this file"));
  return [arguments, command] {
    arguments->cluster.servers = arguments->strategy.strategy_options.servers;
    return run(*arguments, command->count("--strategy") > 0, command->count("--batch") > 0);
  };
}

}  // namespace tutti
