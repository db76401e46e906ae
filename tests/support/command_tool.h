#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "tutti/communicator.h"
#include "tutti/error.h"

namespace tutti::test {

/// One command of `tutti`, as its header has it: adds itself to a program and returns what runs it.
using AddCommand = std::function<std::function<int()>(CLI::App&)>;

/// The main function of a small program that has some of `tutti`'s commands, without libtorch: built in seconds.
/// Exit codes and messages are those of src/cli/main.cpp.
inline int run_commands(int argc, char** argv, const std::vector<AddCommand>& commands) {
  CLI::App program("tutti", "tutti");
  program.require_subcommand(1);
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::map<const CLI::App*, std::function<int()>> runs;
  for (const AddCommand& add : commands) {
    const auto run = add(program);
    runs[program.get_subcommands([](const CLI::App*) { return true; }).back()] = run;
  }
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    program.parse(std::move(words));
    return runs.at(program.get_subcommands().front())();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? program.exit(error) : (program.exit(error), 2);
  } catch (const Stopped&) {
    return kExitPeerFailed;
  } catch (const CommFailed& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return kExitPeerFailed;
  } catch (const UsageError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 1;
  }
}

}  // namespace tutti::test
