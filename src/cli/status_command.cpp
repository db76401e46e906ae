#include "cli/status_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/json_output.h"
#include "status/status_report.h"

namespace tutti {

std::function<int()> add_status_command(CLI::App& program) {
  struct Arguments {
    std::string run;
    std::string runs_folder = "runs";
    bool as_json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("status", "say what the ranks of a run are doing, also when it hangs");
  command->add_option("RUN", arguments->run, "a run's name or folder; unset: the newest that is going on");
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  add_json_flag(*command, arguments->as_json);
  command->footer(
      "Example:\n  tutti train --name first --ranks 2 &\n  tutti status first\n"
      "SIGQUIT to `tutti train` (Ctrl-\\ at a terminal) prints the same, and the run goes on.");
  return [arguments] {
    fmt::print("{}", run_status(arguments->run, arguments->runs_folder, arguments->as_json));
    return 0;
  };
}

}  // namespace tutti
