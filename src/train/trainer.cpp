#include "train/trainer.h"

#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/exit_note.h"
#include "comm/connect.h"
#include "probe/check_report.h"
#include "status/status_board.h"
#include "status/status_files.h"
#include "train/failures.h"
#include "train/rank_setup.h"
#include "train/rank_trainer.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {

namespace {

/// Where this rank shows what it does: where its launcher says, or by what the launcher calls the job.
std::filesystem::path status_place(const TrainOptions& options, const LaunchEnv& env) {
  const char* const chosen = std::getenv(kStatusVariable);
  const std::string job = env.job.empty() ? fmt::format("pid-{}", ::getpid()) : env.job;
  return status_file(chosen != nullptr ? chosen : status_folder(options.runs_folder, job), env.rank);
}

int train_as_rank(const TrainOptions& options, const LaunchEnv& env) {
  set_compute_threads(options.threads);
  std::unique_ptr<EndsAtStopSignal> loading;
  if (options.saves_checkpoints()) {
    note_stop_signals();
    // Servers go on until their ranks have saved.
    if (env.rank < env.size - options.strategy_options.servers)
      loading = std::make_unique<EndsAtStopSignal>(env.rank == 0);
  }
  LaunchEnv ranks = env;
  if (serve_if_server(options, ranks)) return 0;
  const std::unique_ptr<Communicator> comm = connect(options, ranks);
  StatusBoard& status = StatusBoard::get();
  status.set_transport(comm->name());
  const StatusBoard::Watch watch(status, [&comm] { return comm->awaited(); });
  try {
    // Only there can ranks have come from different files.
    if (transport_of(options.transport, ranks).started_by_mpirun) {
      TorchFacts torch;
      torch.libtorch = TORCH_VERSION;
      require_same_build(*comm, torch);
    }
    const std::unique_ptr<Servers> servers = connect_servers(options, ranks);
    std::optional<StatusBoard::Watch> watched_servers;
    if (servers) watched_servers.emplace(status, [&servers] { return servers->push_pull().awaited(); });
    PushPull* const push_pull = servers ? &servers->push_pull() : nullptr;
    const bool is_done = RankTrainer(options, ranks, *comm, push_pull, std::move(loading)).run();
    watched_servers.reset();
    if (servers) servers->stop();
    comm->barrier()->wait();  // nobody leaves while others still need them
    return is_done ? 0 : kExitSaved;
  } catch (const std::exception& error) {
    comm->abort(error.what());
    throw;
  }
}

}  // namespace

int train(const TrainOptions& options, const LaunchEnv& env) {
  RankStatus who;
  who.run = options.name;
  who.rank = env.rank;
  who.ranks = env.size - options.strategy_options.servers;
  StatusBoard& status = StatusBoard::get();
  if (env.rank == 0) forget_old_jobs(options.runs_folder);
  status.open(status_place(options, env), who);
  try {
    const int code = train_as_rank(options, env);
    status.close(code, "");
    return code;
  } catch (const CommFailed& error) {
    status.close(kExitPeerFailed, error.what());
    throw;
  } catch (const TrainingFailed& error) {
    status.close(error.exit_code(), error.what());
    throw;
  } catch (const std::exception& error) {
    status.close(1, error.what());
    throw;
  }
}

}  // namespace tutti
