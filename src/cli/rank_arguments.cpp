#include "cli/rank_arguments.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/connect.h"
#include "comm/mpi/mpi.h"
#include "launch/launcher.h"
#include "launch/mpirun.h"
#include "options/train_options.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// Ranks wait for each other while some of them measure.
constexpr std::chrono::minutes kQuietTime{10};

}  // namespace

std::vector<std::string> own_command_line() {
  std::vector<std::string> words;
  std::ifstream command_line("/proc/self/cmdline");
  for (std::string argument; std::getline(command_line, argument, '\0');) words.push_back(argument);
  words.at(0) = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int default_threads(int share) {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? wanted : std::max(1, share);
}

void RankArguments::add_to(CLI::App& command) {
  command.add_option("--ranks", ranks, "processes to start on this machine; unset: one per core (8 at most)")
      ->group("Ranks");
  command.add_option("--hosts", hosts, "HOST:RANKS,…: start ranks on these machines, by mpirun")->group("Ranks");
  command.add_option("--transport", transport, transport_help())->capture_default_str()->group("Ranks");
  command.add_option("--timeout", timeout_s, "seconds to wait for all ranks to come")
      ->capture_default_str()
      ->group("Ranks");
}

std::optional<int> RankArguments::launch_unless_rank(const LaunchEnv& env) const {
  if (ranks == 0 || ranks < -1 || ranks > kMostRanks)
    throw UsageError("--ranks is {}: it must be from 1 to {}", ranks, kMostRanks);
  if (timeout_s <= 0) throw UsageError("--timeout is {}: it must be above 0", timeout_s);
  const Transport* const chosen = transport == kAutoTransport ? nullptr : &find_transport(transport);
  if (chosen != nullptr && chosen->gpu_per_rank && !chosen->missing().empty())
    throw UsageError("--transport {}: this build has no {}; use --transport {}", transport, chosen->missing(),
                     transports_for_any_device());
  if (!hosts.empty() && chosen != nullptr && chosen->one_machine)
    throw UsageError("--hosts needs --transport mpi or auto: {} joins ranks of one machine", transport);
  const bool is_launched = !env.launcher.empty();
  if (is_launched && env.launcher != "tutti" && hosts.empty() && ranks != -1 && ranks != env.size)
    throw UsageError("--ranks {} contradicts {}, which started {} processes: leave --ranks out", ranks, env.launcher,
                     env.size);
  const int slots = hosts.empty() ? 0 : count_slots(hosts);
  if (slots > 0 && ranks != -1 && ranks != slots)
    throw UsageError("--ranks {} contradicts --hosts {}, which has places for {}: leave --ranks out", ranks, hosts,
                     slots);
  const int wanted = slots > 0 ? slots : ranks != -1 ? ranks : std::min(available_cores(), 8);
  const bool by_mpirun = slots > 0 || (chosen != nullptr && chosen->started_by_mpirun);
  if (is_launched || (wanted == 1 && !by_mpirun)) return std::nullopt;
  LaunchOptions launch;
  launch.quiet_code = 1;  // rank 0 has said what is wrong
  std::vector<std::string> own = own_command_line();
  if (by_mpirun) {
    launch.is_launcher = true;
    launch.command = mpirun_command(hosts, wanted);
  } else {
    launch.ranks = wanted;
    own[0] = "/proc/self/exe";
  }
  launch.command.insert(launch.command.end(), own.begin(), own.end());
  return launch_ranks(launch);
}

std::unique_ptr<Communicator> RankArguments::connect(const LaunchEnv& env) const {
  ConnectOptions options;
  options.transport = on_gpus() ? kAutoTransport : transport;
  options.timeout = kQuietTime;
  options.connect_timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1000));
  if (transport_of(options.transport, env).started_by_mpirun) reach_all_processes(options.connect_timeout);
  return connect_ranks(options, env);
}

int RankArguments::own_gpu(const LaunchEnv& env, int gpus) const {
  if (!has_gpu_for_each_rank(gpus, env))
    throw UsageError("--transport {} needs a GPU for each rank, and this machine has {} for {} ranks", transport, gpus,
                     env.local_size);
  return env.local_rank % gpus;
}

}  // namespace tutti
