#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/limited.h"
#include "tutti/communicator.h"

namespace tutti {

/// One message of every step: `count` elements that each worker pushes to `server`, which adds them up in rank order
/// and sends the sum back.
struct PushPullMessage {
  std::size_t count = 0;
  int server = 0;
};

/// A group of workers and servers is one communicator: the workers are its first ranks, the servers the others.
struct ServerGroup {
  int workers = 1;  // ranks that push: one per node
  int servers = 1;
  bool colocated = false;  // each server shares its machine with a worker

  int size() const { return workers + servers; }
  int rank_of_server(int server) const { return workers + server; }
};

/// A rank's way to the parameter servers. One calling thread at a time, except abort().
///
///   servers.announce(type, messages);              // again whenever the messages change
///   servers.begin_step();
///   auto work = servers.start(0, span);  …  work->wait();      // each message once, in any number under way
///
/// Ranks of one node first add up among themselves, and one of them talks to the servers; so all ranks of a node start
/// messages, and wait for them, in the same order.
class PushPull {
 public:
  /// `group` connects this worker with the servers, and should make progress by itself; null on a rank that leaves the
  /// talking to the first rank of `node`. `node` is null where every rank talks for itself. Both outlive this.
  PushPull(const ServerGroup& shape, Communicator* group, Communicator* node);

  int servers() const { return shape_.servers; }

  /// Tells the servers what each step will bring. All workers give the same messages.
  void announce(DataType type, const std::vector<PushPullMessage>& messages);
  /// Before the first message of a step, when all of the step before are complete.
  void begin_step();
  /// Pushes a message's elements; the sum over all ranks is in their place when the Work completes.
  std::unique_ptr<Work> start(std::size_t message, Span inout);
  /// Lets the servers go. The last call.
  void stop();
  void abort(const std::string& reason) noexcept;
  /// What this rank waits for. Any thread.
  Awaited awaited() { return talks() ? group_->awaited() : node_ != nullptr ? node_->awaited() : Awaited{}; }

  /// From now on messages take at least as long as over such links: startup + n / rate, times what the busiest link
  /// carries: a server's for several workers, or both roles' of a machine.
  void limit_links(const LinkLimit& limit) { limit_ = limit; }

 private:
  bool talks() const { return group_ != nullptr; }
  bool leads() const { return talks() && group_->rank() == 0; }
  void tell_servers(int64_t command);
  std::chrono::nanoseconds pretended_cost(std::size_t bytes) const;

  ServerGroup shape_;
  Communicator* group_;
  Communicator* node_;
  LinkLimit limit_;
  std::vector<PushPullMessage> messages_;
};

/// Serves the workers of `group` until they stop; throws CommFailed when one is gone. The caller is a server of it.
void serve(Communicator& group, const ServerGroup& shape);

}  // namespace tutti
