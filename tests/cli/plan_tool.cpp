#include "cli/calibrate_command.h"
#include "cli/plan_command.h"
#include "cli/report_command.h"
#include "support/command_tool.h"

/// plan_tool plan …, plan_tool calibrate …: as `tutti plan …` and `tutti calibrate …`, without libtorch; and `report`,
/// which reads what they write.
int main(int argc, char** argv) {
  return tutti::test::run_commands(argc, argv,
                                   {tutti::add_plan_command, tutti::add_calibrate_command, tutti::add_report_command});
}
