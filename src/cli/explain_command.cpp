#include "cli/explain_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/json_output.h"
#include "record/run_finder.h"
#include "report/explain.h"

namespace tutti {

std::function<int()> add_explain_command(CLI::App& program) {
  struct Arguments {
    std::string run;
    std::string runs_folder = "runs";
    bool as_json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("explain", "say where the time of a run's steps went");
  command->add_option("RUN", arguments->run, "a run's name or folder")->required();
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  add_json_flag(*command, arguments->as_json);
  command->footer("Example:\n  tutti train --name first --ranks 2\n  tutti explain first");
  return [arguments] {
    const Explanation explanation = read_explanation(run_finder().require(arguments->run, arguments->runs_folder));
    if (arguments->as_json)
      print_json(to_json(explanation));
    else
      fmt::print("{}", describe(explanation));
    return 0;
  };
}

}  // namespace tutti
