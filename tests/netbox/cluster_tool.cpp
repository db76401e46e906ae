#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/cluster_command.h"
#include "tutti/error.h"

/// cluster_tool ACTION…: as `tutti cluster ACTION…`.
int main(int argc, char** argv) {
  CLI::App program("tutti", "tutti");
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as in src/cli/main.cpp
  const std::function<int()> run = tutti::add_cluster_command(program);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    words.insert(words.begin(), "cluster");
    std::reverse(words.begin(), words.end());
    program.parse(std::move(words));
    return run();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? program.exit(error) : (program.exit(error), 2);
  } catch (const tutti::UsageError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 1;
  }
}
