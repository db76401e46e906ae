#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch_env.h"
#include "comm/transport.h"
#include "tutti/communicator.h"

namespace tutti {

/// This program and its arguments, with a path that holds from anywhere.
std::vector<std::string> own_command_line();

/// Cores that this process may use.
int available_cores();

/// Of each rank: what OMP_NUM_THREADS says, or else its share of the cores.
int default_threads(int share);

/// The ranks of a command that is not training: the same command under mpirun, under srun, with --hosts, or alone.
struct RankArguments {
  int ranks = -1;  // -1: not given
  std::string hosts;
  std::string transport = kAutoTransport;
  double timeout_s = 20;

  void add_to(CLI::App& command);

  /// Starts the ranks unless a launcher already has, and returns their exit code; nothing when this process is a rank
  /// and has to go on as `env`. Throws UsageError for what cannot be meant.
  std::optional<int> launch_unless_rank(const LaunchEnv& env) const;

  /// Joins the others. GPUs are joined where they are measured: for a transport between them, over what auto stands
  /// for. Throws CommFailed naming those that do not come in time.
  std::unique_ptr<Communicator> connect(const LaunchEnv& env) const;

  /// Whether the transport is between GPUs.
  bool on_gpus() const { return transport != kAutoTransport && find_transport(transport).gpu_per_rank; }
  /// The one that this rank has for itself, of the machine's `gpus`. Throws UsageError where there is none.
  int own_gpu(const LaunchEnv& env, int gpus) const;
};

}  // namespace tutti
