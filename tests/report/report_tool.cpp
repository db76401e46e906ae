#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/report_command.h"

/// report_tool report …: as `tutti report …`, without libtorch.
int main(int argc, char** argv) {
  using namespace tutti;
  CLI::App program("tutti", "tutti");
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as in src/cli/main.cpp
  const auto report = add_report_command(program);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::reverse(words.begin(), words.end());
    program.parse(std::move(words));
    return report();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? program.exit(error) : (program.exit(error), 2);
  } catch (const UsageError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 1;
  }
}
