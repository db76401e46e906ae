#include "cli/runs_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/names.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "cli/json_output.h"
#include "record/run_finder.h"
#include "runs/find_runs.h"
#include "runs/recipe_of_run.h"
#include "runs/remove_run.h"
#include "runs/run_comparison.h"
#include "runs/run_details.h"
#include "runs/run_list.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct RunsArguments {
  std::string runs_folder = "runs";
  std::vector<std::string> folders;  // to list
  std::vector<std::string> runs;     // to show, compare, remove or repeat
  bool as_json = false;
  bool is_sure = false;
  std::string output;
};

constexpr const char* kOneRun = "a run's name or folder";
constexpr const char* kManyRuns = "runs, each by its name or folder";
constexpr const char* kActions[] = {"show", "compare", "rm", "recipe"};

RunFacts facts_of(const std::string& run, const RunsArguments& arguments) {
  const fs::path file = run_finder().find(run, arguments.runs_folder);
  if (file.empty()) throw UsageError(run_finder().complaint(run, arguments.runs_folder));
  return read_run_facts(file);
}

/// A word that is no folder may be a run, or an action with a slip in it.
void check_folder(const std::string& folder, const RunsArguments& arguments) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  const std::string nearest = nearest_name(folder, {std::begin(kActions), std::end(kActions)});
  const bool is_run = !run_finder().find(folder, arguments.runs_folder).empty();
  const std::string meant = is_run ? "show " + folder : nearest;
  throw UsageError("{}: there is no such folder{}", folder,
                   meant.empty() ? "" : fmt::format("; did you mean `tutti runs {}`?", meant));
}

const std::string& only_run(const RunsArguments& arguments, const char* action) {
  if (arguments.runs.size() > 1)
    throw UsageError("`tutti runs {}` takes one run, not also {}", action, arguments.runs[1]);
  return arguments.runs.front();
}

int list(const RunsArguments& arguments, bool has_runs_folder) {
  std::vector<std::string> places = arguments.folders;
  for (const std::string& place : places) check_folder(place, arguments);
  const bool is_usual = places.empty() && !has_runs_folder;
  if (places.empty() || has_runs_folder) places.push_back(arguments.runs_folder);
  std::error_code ignored;
  // Before the first run there is no runs/, which is no mistake.
  const bool is_none = is_usual && !fs::exists(arguments.runs_folder, ignored);
  const std::vector<RunFacts> runs = is_none ? std::vector<RunFacts>() : find_runs(places);
  if (arguments.as_json)
    print_json(to_json(runs));
  else if (runs.empty())
    fmt::print("no runs in {}; `tutti train` makes one\n", printable(fmt::format("{}", places.front())));
  else
    fmt::print("{}", run_list(runs, terminal_width()));
  return 0;
}

int show(const RunsArguments& arguments) {
  const RunFacts run = facts_of(only_run(arguments, "show"), arguments);
  if (arguments.as_json)
    print_json(details_json(run));
  else
    fmt::print("{}", describe(run));
  return 0;
}

int compare(const RunsArguments& arguments) {
  if (arguments.runs.size() < 2)
    throw UsageError("a comparison takes two runs or more: tutti runs compare {} OTHER", arguments.runs.front());
  std::vector<RunFacts> runs;
  for (const std::string& run : arguments.runs) {
    runs.push_back(facts_of(run, arguments));
    if (runs.back().state == RunState::unreadable) throw Error(runs.back().problem);
  }
  const RunComparison comparison = compare_runs(std::move(runs));
  if (arguments.as_json)
    print_json(to_json(comparison));
  else
    fmt::print("{}", describe(comparison));
  return 0;
}

bool is_confirmed(const std::vector<RemovableRun>& runs) {
  uint64_t bytes = 0;
  for (const RemovableRun& run : runs) {
    fmt::print(stderr, "  {}\n", printable(valid_utf8(run.folder().string())));
    bytes += run.bytes();
  }
  fmt::print(stderr, "Remove {} with {} of files? [y/N] ",
             runs.size() == 1 ? "this run" : fmt::format("these {} runs", runs.size()), readable_bytes(bytes));
  std::fflush(stderr);
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

int remove(const RunsArguments& arguments) {
  // All are looked at before the first is removed.
  std::vector<RemovableRun> runs;
  std::set<fs::path> seen, parents;
  for (const std::string& name : arguments.runs) {
    const fs::path file = run_finder().find(name, arguments.runs_folder);
    std::error_code ignored;
    if (!file.empty() && !seen.insert(fs::weakly_canonical(file, ignored)).second) continue;  // named twice
    runs.emplace_back(name, arguments.runs_folder);
    parents.insert(runs.back().folder().parent_path());
  }
  if (!arguments.is_sure) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
      throw UsageError("nobody can be asked here whether to remove {}: add --yes",
                       runs.size() == 1 ? runs.front().folder().string() : fmt::format("{} runs", runs.size()));
    if (!is_confirmed(runs)) {
      fmt::print("Nothing was removed.\n");
      return 1;
    }
  }
  for (RemovableRun& run : runs) {
    run.remove();
    fmt::print("{}: removed\n", printable(valid_utf8(run.folder().string())));
    std::fflush(stdout);
  }
  for (const fs::path& parent : parents) finish_removals(parent.empty() ? "." : parent);
  return 0;
}

int recipe(const RunsArguments& arguments) {
  const RunFacts run = facts_of(only_run(arguments, "recipe"), arguments);
  if (run.state == RunState::unreadable) throw Error(run.problem);
  const std::string text = recipe_of(run);
  if (arguments.output.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  write_file_atomically(arguments.output, text);
  fmt::print("{} is written; it repeats the run with: tutti train --recipe {}\n", arguments.output, arguments.output);
  return 0;
}

CLI::App* add_runs_action(CLI::App& command, RunsArguments& arguments, const char* name, const char* what) {
  CLI::App* action = command.add_subcommand(name, what);
  action->add_option("--runs", arguments.runs_folder, "folder that holds the runs")->capture_default_str();
  return action;
}

void add_runs(CLI::App& action, RunsArguments& arguments, const char* what) {
  action.add_option("RUN", arguments.runs, what)->required()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

std::function<int()> add_runs_command(CLI::App& program) {
  auto arguments = std::make_shared<RunsArguments>();
  CLI::App* command = program.add_subcommand("runs", "list, show, compare, remove and repeat runs");
  command->require_subcommand(0, 1);
  command->add_option("FOLDER", arguments->folders, "folders of runs or sweeps to list, or single runs; unset: --runs")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const CLI::Option* runs_folder =
      command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  add_json_flag(*command, arguments->as_json);

  CLI::App* shown = add_runs_action(*command, *arguments, "show", "how a run went, its options, checkpoints and files");
  add_runs(*shown, *arguments, kOneRun);
  add_json_flag(*shown, arguments->as_json);
  CLI::App* compared = add_runs_action(*command, *arguments, "compare", "runs side by side: options, losses, speed");
  add_runs(*compared, *arguments, kManyRuns);
  add_json_flag(*compared, arguments->as_json);
  CLI::App* removed = add_runs_action(*command, *arguments, "rm", "remove runs with all their files");
  add_runs(*removed, *arguments, kManyRuns);
  removed->add_flag("-y,--yes", arguments->is_sure, "do not ask");
  CLI::App* repeated = add_runs_action(*command, *arguments, "recipe", "a recipe that repeats a run");
  add_runs(*repeated, *arguments, kOneRun);
  repeated->add_option("-o,--output", arguments->output, "write it to this file (unset: print it)");
  command->footer(
      "Examples:\n"
      "  tutti runs                                  what there is, the newest first\n"
      "  tutti runs show first\n"
      "  tutti runs compare first second             what differs, losses at equal samples, speed\n"
      "  tutti runs recipe first -o first.yaml       then: tutti train --recipe first.yaml\n"
      "  tutti runs rm first second");
  return [arguments, command, runs_folder]() -> int {
    const std::vector<CLI::App*> chosen = command->get_subcommands();
    if (chosen.empty()) return list(*arguments, runs_folder->count() > 0);
    const std::string action = chosen.front()->get_name();
    if (!arguments->folders.empty())
      throw UsageError("{}: put what `tutti runs {}` is to look at behind '{}'", arguments->folders.front(), action,
                       action);
    if (action == "show") return show(*arguments);
    if (action == "compare") return compare(*arguments);
    if (action == "rm") return remove(*arguments);
    return recipe(*arguments);
  };
}

}  // namespace tutti
