#include "train/rank_setup.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <utility>

#include "comm/connect.h"
#include "comm/exchange.h"
#include "comm/limited.h"
#include "plan/wire_format.h"
#include "status/status_board.h"
#include "train/gpu_names.h"
#include "train/torchrun_store.h"
#include "tutti/error.h"

namespace tutti {

namespace {

LinkLimit link_limit(const TrainOptions& options) {
  return {std::chrono::nanoseconds(static_cast<int64_t>(options.link_startup_us * 1e3)), options.link_gbps * 1e9 / 8};
}

bool needs_servers(const TrainOptions& options, int ranks) {
  if (ranks == 1) return false;
  // `auto` tries servers where a person has offered some.
  if (options.strategy == kAutoStrategy) return options.strategy_options.servers > 0;
  return find_strategy(options.strategy).uses_servers;
}

std::chrono::milliseconds transport_timeout(const TrainOptions& options) {
  return std::chrono::milliseconds(static_cast<int64_t>(options.comm_timeout_s * 1000));
}

/// Ranks share GPUs when there are more of them.
int gpu_of(int local_rank) { return local_rank % static_cast<int>(torch::cuda::device_count()); }

/// The GPU that this rank has for itself.
int own_gpu(const Transport& transport, const TrainOptions& options, const LaunchEnv& env) {
  const std::string others = transports_for_any_device();
  if (!transport.missing().empty())
    throw UsageError("--transport {}: this build has no {}; use --transport {}", transport.name, transport.missing(),
                     others);
  const torch::Device device = choose_device(options.device, env.local_rank);
  if (!device.is_cuda())
    throw UsageError("--transport {} needs a GPU for each rank: use --transport {}", transport.name, others);
  if (needs_servers(options, env.size))
    throw UsageError("strategy {} adds up in its servers' host memory: use --transport {}", options.strategy, others);
  const int gpus = static_cast<int>(torch::cuda::device_count());
  if (!has_gpu_for_each_rank(gpus, env))
    throw UsageError(
        "--transport {} needs a GPU for each rank, and this machine has {} for {} ranks: use --transport {}, "
        "where ranks share GPUs, or start fewer ranks",
        transport.name, gpus, env.local_size, others);
  return device.index();
}

/// Whether `auto` looks if each rank has a GPU of its own. The same on all ranks.
bool may_use_gpus(const TrainOptions& options, const LaunchEnv& env) {
  return gpu_transport() != nullptr && env.size > 1 && options.device != "cpu" && !options.by_node &&
         !needs_servers(options, env.size) && !is_compressed(options.wire) && options.link_startup_us == 0 &&
         options.link_gbps == 0;
}

ServersOptions server_options(const TrainOptions& options, const LaunchEnv& env) {
  return {env.job,
          env.size,
          options.strategy_options.servers,
          options.ranks_per_node,
          link_limit(options),
          transport_of(options.transport, env).name,
          transport_timeout(options)};
}

}  // namespace

std::unique_ptr<Communicator> connect(const TrainOptions& options, const LaunchEnv& env) {
  ConnectOptions how;
  const Transport& transport = transport_of(options.transport, env);
  if (transport.gpu_per_rank) {
    how.device = own_gpu(transport, options, env);
    if (env.launcher == "torchrun") how.share = share_through_torchrun(env.rank);
  } else if (options.transport == kAutoTransport && may_use_gpus(options, env)) {
    how.gpu_id = "";
    if (torch::cuda::is_available()) {  // a rank that lacks one says so once all have joined
      how.device = gpu_of(env.local_rank);
      how.gpu_id = gpu_id(how.device);
    }
  }
  how.transport = options.transport;
  how.by_node = options.by_node;
  how.servers = options.strategy_options.servers;
  how.timeout = transport_timeout(options);
  auto comm = connect_ranks(how, env);  // no progress thread: the engine has a communication thread of its own
  if (options.link_startup_us == 0 && options.link_gbps == 0) return comm;
  return limit_links(std::move(comm), link_limit(options));
}

std::unique_ptr<Servers> connect_servers(const TrainOptions& options, const LaunchEnv& env) {
  if (!needs_servers(options, env.size)) return nullptr;
  return std::make_unique<Servers>(server_options(options, env), env.rank);
}

bool serve_if_server(const TrainOptions& options, LaunchEnv& env) {
  const int servers = options.strategy_options.servers;
  const int ranks = env.size - servers;
  if (env.nodes == 1) env.local_size -= env.size - ranks;
  env.size = ranks;
  if (env.rank < ranks) return false;
  StatusBoard::get().be_server(ranks);
  run_server(server_options(options, env), env.rank - ranks);
  return true;
}

torch::Device choose_device(const std::string& wanted, int local_rank) {
  const bool available = torch::cuda::is_available();
  if (wanted == "cpu" || (wanted == "auto" && !available)) return torch::kCPU;
  if (!available) throw UsageError("--device cuda: no usable GPU (this build's libtorch finds none); use --device cpu");
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(gpu_of(local_rank))};
}

std::chrono::milliseconds pretended_slowness(int rank) {
  const char* const text = std::getenv("TUTTI_SLOW_RANK");
  if (text == nullptr) return std::chrono::milliseconds(0);
  int slow = 0, milliseconds = 0, end = 0;
  if (std::sscanf(text, "%d:%d%n", &slow, &milliseconds, &end) != 2 || text[end] != 0 || milliseconds < 0)
    throw UsageError("TUTTI_SLOW_RANK={} does not read like RANK:MILLISECONDS", text);
  return std::chrono::milliseconds(slow == rank ? milliseconds : 0);
}

void set_compute_threads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS has threads of its own, which torch does not know about; no other BLAS has this function.
  if (void* const function = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(function)(threads);
}

void all_ranks_or_none(Communicator& comm, const std::function<void()>& work) {
  std::string problem;
  bool usage = false;
  try {
    work();
  } catch (const UsageError& error) {
    problem = error.what();
    usage = true;
  } catch (const CommFailed&) {
    throw;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto problems = gather_texts(comm, problem);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    finish_together(comm);
    if (static_cast<int>(rank) != comm.rank()) throw Stopped("rank {} could not start", rank);
    if (usage) throw UsageError(problem);
    throw Error(problem);
  }
}

void first_rank_alone(Communicator& comm, const std::function<void()>& work) {
  if (comm.size() == 1) {
    work();
    return;
  }
  std::future<void> done;
  if (comm.rank() == 0) done = std::async(std::launch::async, work);
  enum : int64_t { under_way, succeeded, failed };
  std::exception_ptr error;
  int64_t state = under_way;
  while (state == under_way) {
    if (comm.rank() == 0 && done.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready) {
      state = succeeded;
      try {
        done.get();
      } catch (...) {
        error = std::current_exception();
        state = failed;
      }
    }
    comm.broadcast({&state, 1, DataType::i64}, 0)->wait();
  }
  if (state == succeeded) return;
  finish_together(comm);
  if (error) std::rethrow_exception(error);
  throw Stopped("rank 0 could not save");
}

}  // namespace tutti
