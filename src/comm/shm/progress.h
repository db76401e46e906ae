#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/shm/channels.h"
#include "comm/shm/collective.h"
#include "comm/shm/peer_watch.h"

namespace tutti::shm {

struct ShmProgressOptions {
  std::chrono::microseconds spin{0};
  bool own_thread = true;
  WaitLimits limits = {};
};

/// Makes progress on everything under way: in a thread of its own, or inside wait().
class ShmProgress {
 public:
  /// `segment` must outlive the engine.
  ShmProgress(Segment& segment, ShmProgressOptions options);
  /// Fails what is still under way on this rank.
  ~ShmProgress();

  void post(std::shared_ptr<Collective> collective);
  void post_send(std::shared_ptr<PointToPoint> send);
  void post_receive(std::shared_ptr<PointToPoint> receive);
  /// Returns once the operation has finished; throws what it failed with.
  void wait(const Pending& operation);
  /// What this rank waits for. Any thread.
  Awaited awaited() { return watch_.awaited(); }

 private:
  void post(std::function<void()> task);
  bool take_posted();
  bool advance();
  bool notice_departures();
  void watch_peers();
  void tell_caller();
  template <typename Condition>
  void advance_until(Condition condition);

  Segment& segment_;
  ShmProgressOptions options_;

  // Of the thread that makes progress.
  CollectiveQueue collectives_;
  Channels channels_;
  PeerWatch watch_;

  // Between the caller and the engine's own thread.
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::atomic<bool> has_posted_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last member: starts once the state it uses exists
};

}  // namespace tutti::shm
