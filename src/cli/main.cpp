#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/build_info.h"
#include "base/crash_report.h"
#include "base/exit_note.h"
#include "base/malloc_tuning.h"
#include "base/names.h"
#include "base/process.h"
#include "base/utf8.h"
#include "cli/bench_command.h"
#include "cli/calibrate_command.h"
#include "cli/check_command.h"
#include "cli/cluster_command.h"
#include "cli/completion_command.h"
#include "cli/data_command.h"
#include "cli/eval_command.h"
#include "cli/explain_command.h"
#include "cli/export_command.h"
#include "cli/json_output.h"
#include "cli/models_command.h"
#include "cli/option_names.h"
#include "cli/plan_command.h"
#include "cli/predict_command.h"
#include "cli/probe_command.h"
#include "cli/recipe.h"
#include "cli/report_command.h"
#include "cli/run_command.h"
#include "cli/runs_command.h"
#include "cli/slurm_command.h"
#include "cli/status_command.h"
#include "cli/train_command.h"
#include "cli/watch_command.h"
#include "launch/launcher.h"
#include "probe/check_report.h"
#include "train/failures.h"
#include "train/plugin.h"
#include "train/torch_facts.h"
#include "tutti/communicator.h"
#include "tutti/error.h"

namespace {

using namespace tutti;

constexpr int kExitError = 1;

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

bool has_word(int argc, char** argv, std::string_view word) { return std::count(argv + 1, argv + argc, word) > 0; }

bool takes_words(const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  return std::any_of(options.begin(), options.end(), [](const auto* option) { return option->get_positional(); });
}

/// CLI11 says "The following arguments were not expected"; a person wants to know what was meant.
void suggest_names(const CLI::App& program, int argc, char** argv) {
  const CLI::App* command = &program;
  std::string shown = "tutti";
  int next = 1;
  // Down to the command, or its subcommand where it has some.
  for (auto names = subcommand_names(program); !names.empty(); names = subcommand_names(*command)) {
    if (next >= argc) return;
    const std::string word = argv[next];
    if (word.empty() || word[0] == '-') {
      if (command == &program) return;
      break;
    }
    // What is none of its subcommands may be one of its other words.
    if (takes_words(*command) && std::find(names.begin(), names.end(), word) == names.end()) break;
    if (std::find(names.begin(), names.end(), word) == names.end())
      throw UsageError("{} See `{} --help`.", unknown_name("command", word, names), shown);
    command = command->get_subcommand(word);
    shown += " " + word;
    ++next;
  }
  const std::vector<std::string> options = option_names(*command);
  for (int i = next; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") return;  // what follows is no business of ours
    word = word.substr(0, word.find('='));
    if (word.rfind("--", 0) != 0 || std::find(options.begin(), options.end(), word) != options.end()) continue;
    const std::string nearest = nearest_name(word, options);
    throw UsageError("unknown option '{}'{} `{} --help` lists them.", word,
                     nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest), shown);
  }
}

int run_copied_rank(const std::vector<std::string>& words);

int run(int argc, char** argv) {
  CLI::App program("Tutti trains one neural network on many processors at once, and shows where the time goes.",
                   "./tutti");
  program.set_version_flag(
      "--version", fmt::format("tutti {} ({}, {}, {})", build_version(), build_commit(), build_type(), build_torch()));
  bool as_json = false;
  program.add_flag("--json", as_json, "with --version: print JSON");
  program.require_subcommand(0, 1);
  program.option_defaults()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);  // so that scripts can add to a command
  program.footer(
      "Start with ./tutti train, then ./tutti train --help. The script ./tutti also knows test, lint and clean.");
  // Before options are described: it may bring names that they can have.
  const std::vector<std::string> plugins = plugins_of(std::vector<std::string>(argv + 1, argv + argc));
  for (const std::string& file : plugins) load_plugin(file);
  std::map<std::string, std::function<int()>> commands;
  commands["train"] = add_train_command(program, TUTTI_COPIES_RANKS && plugins.empty() ? run_copied_rank : RunHere());
  commands["run"] = add_run_command(program);
  commands["bench"] = add_bench_command(program, problem_of_train_option);
  commands["eval"] = add_eval_command(program);
  commands["predict"] = add_predict_command(program);
  commands["export"] = add_export_command(program);
  commands["models"] = add_models_command(program);
  commands["explain"] = add_explain_command(program);
  commands["data"] = add_data_command(program);
  commands["cluster"] = add_cluster_command(program);
  commands["check"] = add_check_command(program, ask_torch);
  commands["probe"] = add_probe_command(program, ask_torch);
  commands["plan"] = add_plan_command(program);
  commands["report"] = add_report_command(program);
  commands["calibrate"] = add_calibrate_command(program);
  commands["status"] = add_status_command(program);
  commands["runs"] = add_runs_command(program);
  commands["watch"] = add_watch_command(program);
  commands["completion"] = add_completion_command(program);
  commands["slurm"] = add_slurm_command(program);
  try {
    suggest_names(program, argc, argv);
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0] == "train") words = expand_recipe(std::move(words), problem_of_train_option);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    program.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr && has_word(argc, argv, "--json")) {
      print_json({{"version", build_version()},
                  {"commit", build_commit()},
                  {"build", build_type()},
                  {"torch", build_torch()}});
      return 0;
    }
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    throw UsageError("{}. See `tutti{} --help`.", error.what(),
                     argc > 1 && argv[1][0] != '-' ? std::string(" ") + argv[1] : "");
  }
  if (as_json) throw UsageError("--json needs --version, or a command before it: tutti runs --json.");
  for (const CLI::App* command : program.get_subcommands()) return commands.at(command->get_name())();
  fmt::print("{}", program.help());
  return 0;
}

void say(const char* text) {
  const char* rank = std::getenv("TUTTI_RANK");
  // Ranks other than 0 speak through the launcher, which puts their number in front.
  const bool clear = rank == nullptr || std::string(rank) == "0";
  const std::string line =
      fmt::format("{}tutti: {}\n", clear && ::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", printable(text));
  std::fputs(line.c_str(), stderr);  // which throws nothing where nobody reads it
}

int run_and_explain(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const RefusedByAll&) {
    return kExitUsage;
  } catch (const Stopped&) {
    return kExitPeerFailed;
  } catch (const CommFailed& error) {
    say(error.what());
    return kExitPeerFailed;
  } catch (const UsageError& error) {
    say(error.what());
    return kExitUsage;
  } catch (const TrainingFailed& error) {
    say(error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    say(error.what());
    return kExitError;
  }
}

/// Lets this process, and ranks that are copies of it, end without the destructors of what was made before main().
/// Those are libtorch's tables, a seventh of a short command's time. What is made later, as the session of MPI, ends as
/// it should. Libraries that a tool puts in, and plug-ins, may have to say something at the end.
void leave_early(int argc, char** argv) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  if (preloaded != nullptr && *preloaded != '\0') return;
  if (!plugins_of(std::vector<std::string>(argv + 1, argv + argc)).empty()) return;
  ::on_exit(
      [](int code, void*) {
        std::fflush(nullptr);
        ::_exit(code);
      },
      nullptr);
}

int run_program(int argc, char** argv) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have better reports of their own
  report_crashes();
#endif
  int code = run_and_explain(argc, argv);
  // Whoever stops reading, as `head` does, has what they want.
  if (std::fflush(stdout) != 0 && errno != EPIPE && code == 0) {
    say(fmt::format("stdout: {}", std::strerror(errno)).c_str());
    code = kExitError;
  }
  write_exit_note(code);
  return code;
}

int run_copied_rank(const std::vector<std::string>& words) {
  // Tools show the launcher's environment for it, too: let them tell ranks apart by this.
  if (const char* const rank = std::getenv("TUTTI_RANK")) ::prctl(PR_SET_NAME, fmt::format("tutti:{}", rank).c_str());
  return run_program(static_cast<int>(words.size()), exec_arguments(words).data());
}

}  // namespace

int main(int argc, char** argv) {
  tune_malloc();
  if (TUTTI_LEAVES_EARLY) leave_early(argc, argv);
  return run_program(argc, argv);
}
