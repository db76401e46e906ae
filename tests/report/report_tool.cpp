#include "cli/report_command.h"
#include "support/command_tool.h"

/// report_tool report …: as `tutti report …`, without libtorch.
int main(int argc, char** argv) { return tutti::test::run_commands(argc, argv, {tutti::add_report_command}); }
