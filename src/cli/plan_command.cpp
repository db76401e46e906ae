#include "cli/plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "cli/plan_cluster.h"
#include "cli/strategy_arguments.h"
#include "plan/cost_model.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct PlanArguments {
  std::string run;
  std::string runs_folder = "runs";
  StrategyArguments strategy;
  int ranks = 0;  // 0: the run's
  ClusterPlanArguments cluster;
};

/// What a run planned and measured.
struct MeasuredRun {
  Plan plan;
  Profile profile;
  std::optional<Links> links;
  std::optional<double> batch;  // samples per rank and micro-batch
};

/// From the newest "plan" record of a run's file, and what it says of the run.
MeasuredRun read_run(const fs::path& file) {
  std::istringstream lines(read_file(file));
  std::optional<nlohmann::json> found;
  MeasuredRun run;
  try {
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!record.is_object()) continue;
      const std::string kind = record.value("record", "");
      if (kind == "plan") found = record;
      if (kind == "run" && record.contains("config") && record.at("config").contains("batch"))
        run.batch = record.at("config").at("batch").get<double>();
    }
    if (!found) throw Error("{} holds no plan: the run was shorter than its three profile steps", file.string());
    run.plan = found->at("plan");
    run.profile = found->at("profile");
    if (found->contains("links")) run.links = found->at("links").get<Links>();
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: a record in it is damaged: {}", file.string(), error.what());
  }
  return run;
}

fs::path folder_of(const PlanArguments& arguments) {
  fs::path folder = arguments.run;
  if (!fs::exists(folder / "records.jsonl")) folder = fs::path(arguments.runs_folder) / arguments.run;
  if (!fs::exists(folder / "records.jsonl"))
    throw UsageError("no run '{}': neither {} nor {} holds a records.jsonl", arguments.run, arguments.run,
                     folder.string());
  return folder;
}

int run_on_cluster(const PlanArguments& arguments, bool has_batch) {
  ClusterPlanArguments cluster = arguments.cluster;
  if (!arguments.run.empty()) {
    if (has_batch) throw UsageError("--batch: the profile of a run is that of its own batch; leave it out");
    const MeasuredRun run = read_run(folder_of(arguments) / "records.jsonl");
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

int run(const PlanArguments& arguments, bool has_strategy, bool has_batch) {
  if (!arguments.cluster.cluster.empty() || !arguments.cluster.model.empty())
    return run_on_cluster(arguments, has_batch);
  if (arguments.run.empty())
    throw UsageError("what to plan? A run, or --model and --cluster; `tutti plan --help` shows both");
  const MeasuredRun measured = read_run(folder_of(arguments) / "records.jsonl");
  Plan plan = measured.plan;
  const Profile& profile = measured.profile;
  const Links links = measured.links.value_or(Links{});
  const int ranks = arguments.ranks > 0 ? arguments.ranks : plan.ranks;
  if (has_strategy || ranks != plan.ranks) {
    const std::string name = has_strategy ? arguments.strategy.name : plan.strategy;
    plan = find_strategy(name).make_plan(profile, links, ranks, arguments.strategy.options());
    check_plan(plan);
  }
  fmt::print("{}", describe(plan));
  fmt::print("measured on rank 0: forward {:.2f} ms, backward {:.2f} ms\n", profile.forward_s * 1e3,
             profile.backward_s * 1e3);
  if (!measured.links) {
    fmt::print(
        "The run did not measure its links; one with --strategy mgwfbp or bytescheduler does, and makes predictions "
        "possible.\n");
    return 0;
  }
  fmt::print("measured all-reduce: {:.1f} µs + {:.3f} ns per byte (residual {:.0f} %, {} sizes)\n\n",
             links.all_reduce.startup_s * 1e6, links.all_reduce.per_byte_s * 1e9, links.all_reduce.residual * 100,
             links.all_reduce.samples.size());
  fmt::print("predicted for these links, compute and communication alone:\n  {:<16} {:>10} {:>12} {:>12}\n", "strategy",
             "transfers", "step", "exposed");
  bool leaves_out = false;
  for (const Strategy& strategy : strategies()) {
    if (strategy.uses_servers && links.push_pull.samples.empty()) {
      leaves_out = true;
      continue;
    }
    const Plan candidate = strategy.make_plan(profile, links, ranks, arguments.strategy.options());
    const double step_s = predict_step(candidate, profile, links).step_s;
    fmt::print("  {:<16} {:>10} {:>9.2f} ms {:>9.2f} ms\n", strategy.name, candidate.transfers.size(), step_s * 1e3,
               std::max(0.0, step_s - profile.forward_s - profile.backward_s) * 1e3);
  }
  if (leaves_out) fmt::print("A run with --strategy bytescheduler-ps also measures what parameter servers take.\n");
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
  arguments->strategy.add_to(*command, "Strategy of a run");
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
  group(command->add_option("--optimizer", cluster.optimizer, "sgd, adam, adamw or lamb")->capture_default_str());
  group(command->add_option("--nodes", cluster.nodes, "nodes, instead of as many as the file says"));
  group(command->add_option("--below", cluster.efficiency_bound, "look for the size whose efficiency is under this")
            ->capture_default_str());
  group(command->add_flag("--brief", cluster.brief, "the tables alone"));
  group(command->add_option("--trace", cluster.trace, "write the predicted timeline to this file (Chrome trace)"));
  group(command->add_option("--records", cluster.records, "write simulated records to this file"));
  return [arguments, command] {
    arguments->cluster.servers = arguments->strategy.servers;
    return run(*arguments, command->count("--strategy") > 0, command->count("--batch") > 0);
  };
}

}  // namespace tutti
