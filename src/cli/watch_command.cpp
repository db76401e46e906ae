#include "cli/watch_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/signals.h"
#include "comm/nodes.h"
#include "record/run_finder.h"
#include "tutti/error.h"
#include "watch/access.h"
#include "watch/server.h"
#include "watch/watch.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct WatchArguments {
  std::vector<std::string> runs;
  std::string runs_folder = "runs";
  std::string address = "127.0.0.1";
  int port = 0;
  std::string token;
};

void check_arguments(const WatchArguments& arguments) {
  const bool is_ipv6 = arguments.address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
  if (!is_ipv6 && !is_host_name(arguments.address))
    throw UsageError("--listen '{}' is no address of this machine: give one like 192.168.1.5, or 0.0.0.0 for all",
                     arguments.address);
  if (const std::string problem = problem_of_token(arguments.token); !arguments.token.empty() && !problem.empty())
    throw UsageError("--token cannot be used: {}", problem);
}

/// The address that a browser takes.
std::string url_of(const WatchArguments& arguments, int port) {
  std::string host = arguments.address;
  if (host == "0.0.0.0" || host == "::") host = this_host();
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("http://{}:{}/?token={}", host, port, arguments.token);
}

/// What a person has to know before it shows anything.
void tell_of_missing(const WatchArguments& arguments) {
  const RunFinder finder = run_finder();
  for (const std::string& run : arguments.runs)
    if (finder.find(run, arguments.runs_folder).empty())
      fmt::print(stderr, "note: {}. It is shown as soon as it starts\n", finder.complaint(run, arguments.runs_folder));
  if (arguments.runs.empty() && !fs::is_directory(arguments.runs_folder))
    fmt::print(stderr, "note: there is no folder {} yet. Its runs are shown as soon as they start\n",
               arguments.runs_folder);
}

int watch_runs(WatchArguments arguments) {
  check_arguments(arguments);
  if (arguments.token.empty())
    arguments.token = kept_token((fs::path(arguments.runs_folder) / ".watch-token").string());
  StopSignals stop;
  Watch watch({arguments.runs, arguments.runs_folder});
  const WatchServer server(watch, {arguments.address, arguments.port, arguments.token});
  tell_of_missing(arguments);
  fmt::print("{}\n", url_of(arguments, server.port()));
  if (is_loopback(arguments.address))
    fmt::print("From another machine: ssh -L {0}:127.0.0.1:{0} {1}, then open the same address there.", server.port(),
               this_host());
  else
    fmt::print("Whoever has this address sees the runs, and nothing is encrypted: use it in networks that you trust.");
  fmt::print(" Ctrl-C ends it.\n");
  std::fflush(stdout);
  constexpr int kLookMs = 1000;
  while (stop.first() == 0 && server.is_running()) stop.wait(kLookMs);
  if (stop.first() == 0) throw Error("the web server has stopped by itself");
  return 0;
}

}  // namespace

std::function<int()> add_watch_command(CLI::App& program) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* command = program.add_subcommand("watch", "show training live in a browser, or runs that are over");
  command->add_option("RUN", arguments->runs,
                      "names or folders of runs, also of some that start later; unset: those of --runs that go on");
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  command->add_option("--port", arguments->port, "port to listen on; 0: a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--listen", arguments->address,
                   "address to listen on. Only programs of this machine reach the default; 0.0.0.0: all that reach it")
      ->capture_default_str();
  command
      ->add_option("--token", arguments->token,
                   "what a browser has to show; unset: a random one, kept in the folder of --runs")
      ->envname("TUTTI_WATCH_TOKEN");
  command->footer(
      "Example:\n  tutti train --name first --ranks 2 &\n  tutti watch first\n"
      "Several runs are laid over each other: tutti watch first second");
  return [arguments] { return watch_runs(*arguments); };
}

}  // namespace tutti
