#include "cli/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/json_output.h"
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

/// A plan of the run, simulated, and what its steps took where they were measured.
struct PredictedPlan {
  PlannedStrategy planned;
  std::string how;  // ", as run"
  std::optional<double> measured_s;
};

/// The run's own plan, the one asked for, and every strategy with its best sizes: all simulated as `--strategy auto`
/// does it.
std::vector<PredictedPlan> predict(const RecordedRun& run, const std::optional<PlannedStrategy>& asked, int ranks,
                                   const CandidateRules& rules) {
  std::vector<PredictedPlan> rows;
  const bool has_run = ranks == run.plan.ranks;
  if (has_run) {
    PlannedStrategy own;
    own.name = run.plan.strategy;
    own.settings = run.settings;
    own.plan = run.plan;
    own.step = simulate_run(run.plan, run.profile, cluster_of_run(*run.links, ranks));
    rows.push_back({own, ", as run", run.step_s});
  }
  if (asked && rules.allows(find_strategy(asked->name))) rows.push_back({*asked, ", as asked", {}});
  for (const PlannedStrategy& one : plan_run(run.profile, *run.links, ranks, rules)) rows.push_back({one, "", {}});
  for (std::size_t i = has_run ? 1 : 0; has_run && i < rows.size(); ++i) {
    const auto tried = run.tried_s.find(rows[i].planned.name + " " + rows[i].planned.settings);
    if (tried != run.tried_s.end()) rows[i].measured_s = tried->second;
  }
  return rows;
}

/// Which of them is the best.
std::size_t best_of(const std::vector<PredictedPlan>& rows) {
  std::vector<PlannedStrategy> planned;
  std::vector<std::optional<double>> measured_s;
  for (const PredictedPlan& row : rows) {
    planned.push_back(row.planned);
    measured_s.push_back(row.measured_s);
    // Of the run's own plan, which comes first, all its steps say more than those in which auto tried it.
    const PlannedStrategy& own = rows[0].planned;
    const bool is_own = row.planned.name == own.name && row.planned.settings == own.settings;
    if (!rows[0].how.empty() && rows[0].measured_s && is_own) measured_s.back() = rows[0].measured_s;
  }
  return static_cast<std::size_t>(&best_of(planned, measured_s) - planned.data());
}

void print_predictions(const RecordedRun& run, const std::vector<PredictedPlan>& rows, int ranks) {
  const Cluster cluster = cluster_of_run(*run.links, ranks);
  const bool has_run = ranks == run.plan.ranks;
  const std::size_t best = best_of(rows);
  fmt::print("simulated on {} ranks, each strategy with the sizes found best for it:\n", ranks);
  if (!has_run)
    fmt::print("(links and computation as measured with {} ranks: {} may well be slower)\n", run.plan.ranks, ranks);
  fmt::print("  {:<26} {:>9} {:>11} {:>11} {:>11}  {}\n", "strategy", "transfers", "step", "exposed", "measured",
             "sizes");
  const auto ms = [](double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PlannedStrategy& one = rows[i].planned;
    fmt::print("{} {:<26} {:>9} {:>11} {:>11} {:>11}  {}\n", i == best ? "*" : " ", one.name + rows[i].how,
               one.plan.transfers.size(), ms(one.step.step_s), ms(one.step.exposed_s),
               rows[i].measured_s ? ms(*rows[i].measured_s) : "", one.settings);
  }
  fmt::print("\n{}", kBestMeans);
  if (has_run)
    fmt::print("measured: the median of the run's steps after warm-up{}.\n",
               run.tried_s.empty() ? "" : "; of others, of the steps in which auto tried them");
  const auto is_measured = [](const PredictedPlan& row) { return row.measured_s.has_value(); };
  if (std::any_of(rows.begin(), rows.end(), is_measured))
    fmt::print("What was measured decides; others count as predicted, times what measured steps took longer.\n");
  fmt::print("\n{}", reasons(rows[best].planned, cluster, ranks));
  if (!has_run || best == 0) return;
  if (rows[best].measured_s && run.step_s)
    fmt::print("The run's own plan took {:.1f} % longer, as measured.\n",
               (*run.step_s / *rows[best].measured_s - 1) * 100);
  else if (rows[0].planned.step.step_s > rows[best].planned.step.step_s)
    fmt::print("The run's own plan is predicted to take {:.1f} % longer.\n",
               (rows[0].planned.step.step_s / rows[best].planned.step.step_s - 1) * 100);
}

nlohmann::json predictions_json(const std::vector<PredictedPlan>& rows) {
  nlohmann::json all = nlohmann::json::array();
  if (rows.empty()) return all;
  const std::size_t best = best_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    nlohmann::json one = to_json(rows[i].planned);
    for (const char* const key : {"samples_per_s", "efficiency"}) one.erase(key);  // a profile has no batch
    one["is_as_run"] = rows[i].how == ", as run";
    one["is_as_asked"] = rows[i].how == ", as asked";
    one["is_best"] = i == best;
    one["measured_s"] = rows[i].measured_s ? nlohmann::json(*rows[i].measured_s) : nlohmann::json();
    all.push_back(std::move(one));
  }
  return all;
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
  const std::vector<PredictedPlan> rows = run.links ? predict(run, asked, ranks, rules) : std::vector<PredictedPlan>();
  if (arguments.cluster.as_json) {
    print_json({{"ranks", ranks},
                {"plan", asked ? asked->plan : run.plan},
                {"profile", profile},
                {"links", run.links ? nlohmann::json(*run.links) : nlohmann::json()},
                {"predictions", predictions_json(rows)}});
    return 0;
  }
  fmt::print("{}", describe(asked ? asked->plan : run.plan));
  fmt::print("measured on rank 0: forward {:.2f} ms, backward {:.2f} ms, update {:.2f} ms, the rest {:.2f} ms\n",
             profile.forward_s * 1e3, profile.backward_s * 1e3, profile.update_s * 1e3, profile.rest_s * 1e3);
  if (!run.links) {
    fmt::print(
        "The run did not measure its links; one with --strategy mgwfbp or bytescheduler does, and makes "
        "predictions "
        "possible.\n");
    return 0;
  }
  const LinkCost& links = run.links->all_reduce;
  fmt::print("measured all-reduce: {:.1f} µs + {:.3f} ns per byte (residual {:.0f} %, {} sizes)\n\n",
             links.startup_s * 1e6, links.per_byte_s * 1e9, links.residual * 100, links.samples.size());
  print_predictions(run, rows, ranks);
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
  command->add_flag("--print")->description("print the plan as a table (this is what it does)");
  add_json_flag(*command, arguments->cluster.as_json);
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
