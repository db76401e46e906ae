#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cli/check_command.h"
#include "cli/probe_command.h"
#include "comm/mpi/mpi.h"
#include "launch/launcher.h"
#include "tutti/communicator.h"
#include "tutti/error.h"

/// probe_tool check|probe …: as `tutti check|probe …`, without libtorch. probe_tool stay: starts MPI and says nothing
/// more, as a process does that hangs or cannot be reached.
int main(int argc, char** argv) {
  using namespace tutti;
  if (argc == 2 && argv[1] == std::string("stay")) {
    start_mpi();
    std::this_thread::sleep_for(std::chrono::seconds(20));
    return 0;
  }
  CLI::App program("tutti", "tutti");
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as in src/cli/main.cpp
  const AskTorch no_torch = [](const std::string&) { return TorchFacts{}; };
  const auto check = add_check_command(program, no_torch), probe = add_probe_command(program, no_torch);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::reverse(words.begin(), words.end());
    program.parse(std::move(words));
    return program.got_subcommand("check") ? check() : probe();
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
