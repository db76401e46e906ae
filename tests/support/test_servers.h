#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/ps/servers.h"
#include "tutti/strategy.h"

namespace tutti {

/// The parameter servers that a strategy needs, if any: `servers` threads, or with 0 one beside each rank.
class TestServers {
 public:
  TestServers(const std::string& strategy, int ranks, int servers, int ranks_per_node = 1) {
    if (!find_strategy(strategy).uses_servers || ranks == 1) return;
    static std::atomic<int> groups{0};
    options_.job = "test-ps-" + std::to_string(::getpid()) + "-" + std::to_string(groups++);
    options_.ranks = ranks;
    options_.servers = servers;
    options_.ranks_per_node = ranks_per_node;
    for (int server = 0; server < servers; ++server)
      threads_.emplace_back([options = options_, server] {
        try {
          run_server(options, server);
        } catch (const std::exception&) {
          // The ranks see the same failure.
        }
      });
  }
  ~TestServers() {
    for (std::thread& thread : threads_) thread.join();
  }

  /// A rank's connection; null where none is needed.
  std::unique_ptr<Servers> connect(int rank) const {
    return options_.job.empty() ? nullptr : std::make_unique<Servers>(options_, rank);
  }

 private:
  ServersOptions options_;
  std::vector<std::thread> threads_;
};

}  // namespace tutti
