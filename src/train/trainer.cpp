#include "train/trainer.h"

#include <torch/version.h>

#include <memory>
#include <utility>

#include "comm/connect.h"
#include "probe/check_report.h"
#include "train/rank_setup.h"
#include "train/rank_trainer.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {

int train(const TrainOptions& options, const LaunchEnv& env) {
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
  try {
    // Only there can ranks have come from different files.
    if (transport_of(options.transport, ranks).started_by_mpirun) {
      TorchFacts torch;
      torch.libtorch = TORCH_VERSION;
      require_same_build(*comm, torch);
    }
    const std::unique_ptr<Servers> servers = connect_servers(options, ranks);
    PushPull* const push_pull = servers ? &servers->push_pull() : nullptr;
    const bool is_done = RankTrainer(options, ranks, *comm, push_pull, std::move(loading)).run();
    if (servers) servers->stop();
    comm->barrier()->wait();  // nobody leaves while others still need them
    return is_done ? 0 : kExitSaved;
  } catch (const std::exception& error) {
    comm->abort(error.what());
    throw;
  }
}

}  // namespace tutti
