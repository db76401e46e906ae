#include "cli/explain_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "record/run_finder.h"
#include "report/explain.h"

namespace tutti {

std::function<int()> add_explain_command(CLI::App& program) {
  struct Arguments {
    std::string run;
    std::string runs_folder = "runs";
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("explain", "say where the time of a run's steps went");
  command->add_option("RUN", arguments->run, "a run's name or folder")->required();
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  command->footer("Example:\n  tutti train --name first --ranks 2\n  tutti explain first");
  return [arguments] {
    fmt::print("{}", explain(run_finder().require(arguments->run, arguments->runs_folder)));
    return 0;
  };
}

}  // namespace tutti
