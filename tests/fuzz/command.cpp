#include "fuzz/command.h"

#include <algorithm>
#include <map>

#include "cli/bench_command.h"
#include "cli/calibrate_command.h"
#include "cli/explain_command.h"
#include "cli/option_arguments.h"
#include "cli/plan_command.h"
#include "cli/report_command.h"

namespace tutti::fuzz {

const std::filesystem::path& command_folder() {
  static const test::TempFolder folder;
  return folder.path();
}

void write_input(std::string_view input, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::size_t end = std::min(input.find(kNextFile), input.size());
    const std::filesystem::path file = command_folder() / name;
    if (!std::filesystem::exists(file)) make_folders(file.parent_path());
    std::ofstream(file, std::ios::binary) << input.substr(0, end);
    input.remove_prefix(std::min(end + kNextFile.size(), input.size()));
  }
}

std::string command_outcome(const std::vector<std::string>& words) {
  return outcome([&] {
    CLI::App program("tutti", "tutti");
    program.require_subcommand(1);
    program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    TrainOptions options;
    add_options(*program.add_subcommand("train"), train_option_table(options));  // `bench` asks what options it has
    const std::map<std::string, std::function<int()>> commands = {{"bench", add_bench_command(program)},
                                                                  {"calibrate", add_calibrate_command(program)},
                                                                  {"explain", add_explain_command(program)},
                                                                  {"plan", add_plan_command(program)},
                                                                  {"report", add_report_command(program)}};
    try {
      program.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 wants them
    } catch (const CLI::ParseError& error) {
      throw UsageError("{}", error.what());
    }
    commands.at(words.front())();
  });
}

}  // namespace tutti::fuzz
