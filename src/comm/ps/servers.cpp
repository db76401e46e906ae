#include "comm/ps/servers.h"

#include <numeric>
#include <thread>

#include "comm/transport.h"

namespace tutti {
namespace {

std::unique_ptr<Communicator> join(const ServersOptions& options, const std::string& name, int rank,
                                   const std::vector<int>& processes, int servers, bool moves_by_itself) {
  RankGroup group{options.job, name, rank, processes, servers, wait_limits(options.timeout)};
  // Workers have nothing to say to a server while they test or save, however long that takes.
  if (rank >= group.size() - servers) group.limits.late = std::chrono::milliseconds(0);
  group.progress_thread = moves_by_itself;
  return find_transport(options.transport).join(group);
}

/// A worker's messages move by themselves, while it computes; a server is always waiting for something, which moves
/// all.
std::unique_ptr<Communicator> join_group(const ServersOptions& options, int rank, bool moves_by_itself) {
  const ServerGroup shape = options.shape();
  std::vector<int> processes;
  processes.reserve(static_cast<std::size_t>(shape.size()));
  for (int worker = 0; worker < shape.workers; ++worker) processes.push_back(worker * options.ranks_per_node);
  for (int server = 0; server < shape.servers; ++server)
    processes.push_back(shape.colocated ? processes[static_cast<std::size_t>(server)] : options.ranks + server);
  return join(options, "servers", rank, processes, shape.servers, moves_by_itself);
}

/// The ranks that add up among themselves before the first of them talks to the servers.
std::unique_ptr<Communicator> join_node(const ServersOptions& options, int rank) {
  const int node = rank / options.ranks_per_node, first = node * options.ranks_per_node;
  std::vector<int> processes(static_cast<std::size_t>(std::min(options.ranks_per_node, options.ranks - first)));
  std::iota(processes.begin(), processes.end(), first);
  return join(options, "node" + std::to_string(node), rank - first, processes, 0, false);
}

}  // namespace

class Servers::ServerThread {
 public:
  ServerThread(const ServersOptions& options, int server)
      : thread_([options, server] {
          try {
            run_server(options, server);
          } catch (const std::exception&) {
            // The worker beside it sees the same failure, and says so.
          }
        }) {}
  ~ServerThread() { thread_.join(); }

 private:
  std::thread thread_;
};

Servers::Servers(const ServersOptions& options, int rank) {
  const int node = rank / options.ranks_per_node, first = node * options.ranks_per_node;
  if (rank == first) {
    if (options.servers == 0) server_ = std::make_unique<ServerThread>(options, node);
    group_ = join_group(options, node, true);
  }
  if (options.ranks_per_node > 1) node_ = join_node(options, rank);
  push_pull_ = std::make_unique<PushPull>(options.shape(), group_.get(), node_.get());
  push_pull_->limit_links(options.limit);
}

Servers::~Servers() {
  if (push_pull_) push_pull_->abort("a worker has ended");
}

void Servers::stop() {
  push_pull_->stop();
  push_pull_.reset();
}

void run_server(const ServersOptions& options, int server) {
  const auto group = join_group(options, options.shape().rank_of_server(server), false);
  serve(*group, options.shape());
}

}  // namespace tutti
