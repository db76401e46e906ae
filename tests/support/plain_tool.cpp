#include <chrono>
#include <string>
#include <thread>

#include "cli/calibrate_command.h"
#include "cli/check_command.h"
#include "cli/plan_command.h"
#include "cli/probe_command.h"
#include "cli/report_command.h"
#include "cli/run_command.h"
#include "cli/runs_command.h"
#include "cli/status_command.h"
#include "cli/watch_command.h"
#include "comm/mpi/mpi.h"
#include "support/command_tool.h"

/// plain_tool plan|calibrate|report|run|runs|status|watch|check|probe …: as `tutti plan …`, without libtorch.
/// plain_tool stay: starts MPI and says nothing more, as a process does that hangs or cannot be reached.
int main(int argc, char** argv) {
  using namespace tutti;
  if (argc == 2 && argv[1] == std::string("stay")) {
    start_mpi();
    std::this_thread::sleep_for(std::chrono::seconds(20));
    return 0;
  }
  const AskTorch no_torch = [](const std::string&) { return TorchFacts{}; };
  return test::run_commands(
      argc, argv,
      {add_plan_command, add_calibrate_command, add_report_command, add_run_command, add_runs_command,
       add_status_command, add_watch_command, [&](CLI::App& program) { return add_check_command(program, no_torch); },
       [&](CLI::App& program) { return add_probe_command(program, no_torch); }});
}
