#pragma once

#include <memory>
#include <string>

#include "comm/ps/push_pull.h"

namespace tutti {

/// Workers and parameter servers of one job.
struct ServersOptions {
  std::string job = "";    // workers and servers that give the same name meet
  int ranks = 1;           // that train
  int servers = 0;         // processes of their own; 0: a thread beside each worker that talks to servers
  int ranks_per_node = 1;  // that add up among themselves before one of them talks to the servers
  LinkLimit limit;
  std::string transport = "shm";         // or another in which the servers are the last processes
  std::chrono::milliseconds timeout{0};  // see wait_limits()

  int workers() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  ServerGroup shape() const { return {workers(), servers > 0 ? servers : workers(), servers == 0}; }
};

/// A rank's connection to its servers, and the server thread beside it where it has one. One that goes without stop()
/// ends the servers with an error.
class Servers {
 public:
  /// Returns when everybody has come.
  Servers(const ServersOptions& options, int rank);
  ~Servers();

  PushPull& push_pull() { return *push_pull_; }
  /// Lets the servers go, in good order. Every rank calls it, after the last message.
  void stop();

 private:
  class ServerThread;

  std::unique_ptr<ServerThread> server_;
  std::unique_ptr<Communicator> group_, node_;
  std::unique_ptr<PushPull> push_pull_;
};

/// Is server number `server` until the workers stop; throws CommFailed when one is gone.
void run_server(const ServersOptions& options, int server);

}  // namespace tutti
