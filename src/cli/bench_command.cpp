#include "cli/bench_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/build_info.h"
#include "base/process.h"
#include "cli/json_output.h"
#include "cli/option_names.h"
#include "comm/launch_env.h"
#include "record/record_file.h"
#include "sweep/runner.h"
#include "sweep/sweep_files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using namespace sweep;

struct BenchArguments {
  std::string sweep;  // a name or a file
  bool quick = false;
  std::string resume;  // a folder
  bool list = false;
  bool as_json = false;
  bool dry_run = false;
  std::string folder;
  std::string runs = "runs";
  int repeats = 0;  // 0: not given
  std::vector<std::string> only;
  std::string hosts;
};

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

SweepPlan plan_of(const Sweep& sweep, std::vector<SweepCell> cells) {
  SweepPlan plan;
  for (const Axis& axis : sweep.axes) {
    plan.axes[axis.name] = axis.values;
    plan.axis_order.push_back(axis.name);
  }
  const auto is_strategy = [](const Axis& axis) { return axis.name == "strategy"; };
  plan.compare = sweep.compare;
  if (plan.compare.empty())
    plan.compare = std::any_of(sweep.axes.begin(), sweep.axes.end(), is_strategy) ? "strategy" : sweep.axes.back().name;
  plan.name = sweep.name;
  plan.title = sweep.title;
  plan.is_quick = sweep.is_quick;
  plan.command = shell_line(own_words());
  plan.file = sweep.text;
  plan.baseline = describe_config(sweep.baseline);
  plan.repeats = sweep.repeats;
  plan.warmup_steps = sweep.warmup_steps;
  plan.timeout_minutes = sweep.timeout_minutes;
  plan.keep_weights = sweep.keep_weights;
  plan.environment = this_environment();
  plan.cells = std::move(cells);
  return plan;
}

void print_plan(const std::vector<SweepCell>& cells, const fs::path& folder, const Place& place) {
  for (const SweepCell& cell : cells) {
    std::string line;
    try {
      line = shell_line(cell_command(cell, folder / "cells" / cell.id, place).words);
    } catch (const Error& error) {
      line = fmt::format("cannot run here: {}", error.what());
    }
    fmt::print("{}{}\n  {}\n", cell.id, cell.is_baseline ? " (baseline)" : "", line);
  }
  fmt::print("{} cells\n", cells.size());
}

/// What spoils measurements, said before they are made.
void warn(const SweepFolder& folder) {
  double load = 0;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (::getloadavg(&load, 1) == 1 && load > 0.5 * cores)
    fmt::print("note: this machine is busy (load {:.1f} on {} cores): times will scatter; records keep the load\n",
               load, cores);
  if (std::string(build_type()).find("Release") != 0)
    fmt::print("note: this is a {} build, which is slower than a Release build\n", build_type());
  const std::string commit = folder.plan().environment ? folder.plan().environment->commit : build_commit();
  if (commit != build_commit())
    fmt::print("note: this sweep was begun with commit {}, this is {}; each record says which one it comes from\n",
               commit, build_commit());
  std::vector<std::string> said;
  for (const SweepCell& cell : folder.cells()) {
    if (cell.network.empty() || std::count(said.begin(), said.end(), cell.network) > 0) continue;
    said.push_back(cell.network);
    const std::string note = cell.emulated.note.empty() ? "" : "; " + cell.emulated.note;
    if (cell.emulated.is_slowed()) {
      fmt::print("network {} is emulated: {:g} Gbit/s, {:g} us per collective{}\n", cell.network, cell.emulated.gbps,
                 cell.emulated.startup_us, note);
    } else {
      fmt::print("network {} is taken to be what these machines have{}\n", cell.network, note);
    }
  }
}

int carry_out(SweepFolder& folder, const BenchArguments& arguments) {
  const std::string path = folder.path().string();
  const CellCounts before = count_cells(folder);
  fmt::print("{}: {}\n{} cells{} in {}\n", folder.plan().name, folder.plan().title, before.all,
             before.done > 0 ? fmt::format(", {} of them done,", before.done) : "", path);
  warn(folder);
  std::fflush(stdout);
  const SweepResult result = run_sweep(folder, find_place(own_program(), arguments.hosts, folder.path()));
  const CellCounts& counts = result.counts;
  if (result.stop_signal != 0) {
    fmt::print("Stopped: {} of {} cells are done. To go on: tutti bench --resume {}\n", counts.done, counts.all, path);
    return 128 + result.stop_signal;
  }
  for (const SweepCell& cell : folder.cells()) {
    const CellOutcome& outcome = folder.outcome(cell.id);
    if (outcome.state == CellState::failed) fmt::print("failed: {}: {}\n", cell.id, outcome.error);
  }
  fmt::print("{} of {} cells done. Records: {}/cells.jsonl\n", counts.done, counts.all, path);
  if (counts.failed > 0) {
    fmt::print(
        "What a failed cell printed is in {0}/cells/CELL/output.log; to try those again: tutti bench --resume {0}\n",
        path);
    return 1;
  }
  fmt::print("Tables and figures: tutti report {}\n", path);
  return 0;
}

/// Where the sweep to go on with is: a folder, or the newest of that name, or the newest of all.
fs::path folder_to_resume(const BenchArguments& arguments) {
  const std::string& given = arguments.resume.empty() ? arguments.sweep : arguments.resume;
  if (given.empty()) return newest_sweep(arguments.runs, "");
  if (fs::is_directory(given)) return given;
  if (fs::exists(fs::path(arguments.runs) / given / kSweepFile)) return fs::path(arguments.runs) / given;
  return newest_sweep(arguments.runs, fs::path(given).stem().string());
}

int start(const BenchArguments& arguments, const std::vector<std::string>& train_options,
          const ProblemOfOption& problem_of) {
  if (arguments.sweep.empty())
    throw UsageError("which sweep? Name a file or one of: {}. See `tutti bench --help`.",
                     fmt::join(sweep_names(), ", "));
  Sweep sweep = find_sweep(arguments.sweep, arguments.quick, train_options, problem_of);
  if (arguments.repeats > 0) sweep.repeats = arguments.repeats;
  std::vector<SweepCell> cells = expand(sweep);
  if (!arguments.only.empty()) cells = only(cells, arguments.only, sweep);
  if (cells.empty()) throw UsageError("there is no cell left in {}", arguments.sweep);
  const fs::path path =
      arguments.folder.empty() ? new_sweep_path(arguments.runs, sweep.name) : fs::path(arguments.folder);
  if (arguments.dry_run) {
    print_plan(cells, path, find_place(own_program(), arguments.hosts, path));
    return 0;
  }
  SweepFolder folder = SweepFolder::create(path, plan_of(sweep, std::move(cells)));
  return carry_out(folder, arguments);
}

int run(const BenchArguments& arguments, const CLI::App& command, const std::vector<std::string>& train_options,
        const ProblemOfOption& problem_of) {
  if (arguments.list) {
    const std::vector<SweepSummary> sweeps = list_sweeps(train_options);
    if (!arguments.as_json) fmt::print("{}", describe(sweeps));
    nlohmann::json all = nlohmann::json::array();
    for (const SweepSummary& sweep : sweeps)
      all.push_back({{"name", sweep.name},
                     {"title", sweep.title},
                     {"cells", sweep.cells},
                     {"quick_cells", sweep.quick_cells ? nlohmann::json(*sweep.quick_cells) : nlohmann::json()}});
    if (arguments.as_json) print_json(all);
    return 0;
  }
  if (arguments.as_json) throw UsageError("--json goes with --list; what a sweep measures is JSON in its cells.jsonl");
  const LaunchEnv env = read_launch_env();
  if (env.size > 1)
    throw UsageError(
        "`tutti bench` starts ranks itself, but {} has started {} of it: start it once inside the job, or name "
        "machines "
        "with --hosts",
        env.launcher, env.size);
  if (command.count("--repeats") > 0 && arguments.repeats < 1)
    throw UsageError("--repeats is {}: it must be at least 1", arguments.repeats);
  if (command.count("--resume") == 0) return start(arguments, train_options, problem_of);
  for (const char* const option : {"--quick", "--repeats", "--only", "--output"})
    if (command.count(option) > 0)
      throw UsageError("{} belongs to the beginning of a sweep: --resume goes on with what was begun", option);
  SweepFolder folder = SweepFolder::open(folder_to_resume(arguments));
  if (arguments.dry_run) {
    std::vector<SweepCell> left;
    for (const SweepCell& cell : folder.cells())
      if (folder.outcome(cell.id).state != CellState::done) left.push_back(cell);
    print_plan(left, folder.path(), find_place(own_program(), arguments.hosts, folder.path()));
    return 0;
  }
  return carry_out(folder, arguments);
}

void describe(CLI::App& command, BenchArguments& arguments) {
  command.add_option("SWEEP", arguments.sweep, "a file, or a name from sweeps/; --list shows those");
  command.add_flag("--quick", arguments.quick, "the small form: about two minutes on two cores, with small models");
  command
      .add_option(
          "--resume", arguments.resume,
          "go on with the sweep in this folder (unset: the newest, of SWEEP if given); failed cells are tried again")
      ->expected(0, 1);
  command.add_flag("--list", arguments.list, "show the sweeps there are");
  add_json_flag(command, arguments.as_json);
  command.add_flag("--dry-run", arguments.dry_run, "show the cells, in order, and their commands; run nothing");
  command.add_option("-o,--output", arguments.folder, "folder of the sweep (unset: RUNS/TIME-bench-NAME)");
  command.add_option("--repeats", arguments.repeats, "how often each cell is measured (unset: what the sweep says)");
  command
      .add_option("--only", arguments.only,
                  "axis=value,…: part of the sweep; several values of an axis are alternatives; baselines stay")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--hosts", arguments.hosts, "HOST:RANKS,…: machines for cells with several nodes, by mpirun");
  command.add_option("--runs", arguments.runs, "folder that holds the sweeps")->capture_default_str();
  command.footer(
      "A sweep measures every combination of the values on its axes, each in a training run of its own (a cell):\n"
      "repeat 1 of everything before repeat 2 of anything, what is compared side by side, baselines in the same "
      "sweep.\n"
      "A cell is done, failed with its error, or pending. Stop it with Ctrl-C, or lose power: --resume goes on.\n\n"
      "Examples:\n"
      "  tutti bench --list                                      the published studies, ready to run\n"
      "  tutti bench strategies-networks --quick                 see it work, in about two minutes\n"
      "  tutti report runs/…-bench-strategies-networks           its tables and figures\n"
      "  tutti bench strategies-networks --dry-run               what the full study would run\n"
      "  tutti bench strategies-networks --quick --only strategy=bsp,strategy=dear,network=10gbe --repeats 5\n"
      "  tutti bench my.yaml -o runs/mine                        … Ctrl-C …\n"
      "  tutti bench --resume runs/mine                          goes on; failed cells are tried again\n"
      "  sbatch --nodes 4 --ntasks 16 --wrap 'tutti bench mnist-nodes'     one allocation for all cells\n\n"
      "A sweep file:\n"
      "  title: what it is\n"
      "  axes: {strategy: [bsp, dear], ranks: [2, 4]}            any option of `tutti train`, and nodes and network\n"
      "  options: {model: mnist-cnn, data: digits, steps: 50}    the same for every cell\n"
      "  baseline: {ranks: 1}                                    measured too: what speed-up is counted from\n"
      "  repeats: 3\n"
      "docs/reference/bench.md explains all of it.");
}

}  // namespace

std::function<int()> add_bench_command(CLI::App& program, const ProblemOfOption& problem_of) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = program.add_subcommand("bench", "run a study of many training runs, resumable");
  describe(*command, *arguments);
  return [arguments, command, &program, problem_of] {
    return run(*arguments, *command, option_names(*program.get_subcommand("train")), problem_of);
  };
}

}  // namespace tutti
