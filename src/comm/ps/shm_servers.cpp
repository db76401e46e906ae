#include "comm/ps/shm_servers.h"

#include <thread>

#include "comm/shm/shm.h"

namespace tutti {
namespace {

/// A worker's messages move by themselves, while it computes; a server is always waiting for something, which moves
/// all.
std::unique_ptr<Communicator> join_group(const ShmServerOptions& options, int rank, bool moves_by_itself) {
  ShmOptions shm;
  shm.job = options.job + "-servers";
  shm.rank = rank;
  shm.size = options.shape().size();
  shm.servers = options.shape().servers;
  shm.progress_thread = moves_by_itself;
  return make_shm_communicator(shm);
}

}  // namespace

class ShmServers::ServerThread {
 public:
  ServerThread(const ShmServerOptions& options, int server)
      : thread_([options, server] {
          try {
            run_shm_server(options, server);
          } catch (const std::exception&) {
            // The worker beside it sees the same failure, and says so.
          }
        }) {}
  ~ServerThread() { thread_.join(); }

 private:
  std::thread thread_;
};

ShmServers::ShmServers(const ShmServerOptions& options, int rank) {
  const int node = rank / options.ranks_per_node, first = node * options.ranks_per_node;
  if (rank == first) {
    if (options.servers == 0) server_ = std::make_unique<ServerThread>(options, node);
    group_ = join_group(options, node, true);
  }
  if (options.ranks_per_node > 1) {
    ShmOptions shm;
    shm.job = options.job + "-node" + std::to_string(node);
    shm.rank = rank - first;
    shm.size = std::min(options.ranks_per_node, options.ranks - first);
    shm.progress_thread = false;
    node_ = make_shm_communicator(shm);
  }
  push_pull_ = std::make_unique<PushPull>(options.shape(), group_.get(), node_.get());
  push_pull_->limit_links(options.limit);
}

ShmServers::~ShmServers() {
  if (push_pull_) push_pull_->abort("a worker has ended");
}

void ShmServers::stop() {
  push_pull_->stop();
  push_pull_.reset();
}

void run_shm_server(const ShmServerOptions& options, int server) {
  const auto group = join_group(options, options.shape().rank_of_server(server), false);
  serve(*group, options.shape());
}

}  // namespace tutti
