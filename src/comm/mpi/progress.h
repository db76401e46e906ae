#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/mpi/collective.h"
#include "comm/mpi/messages.h"
#include "comm/wait_limits.h"

namespace tutti::mpi {

/// Moves everything that is under way: inside wait(), and in a thread of its own if wanted. MPI moves nothing by
/// itself.
class MpiProgress {
 public:
  struct Options {
    WaitLimits limits;
    bool own_thread = false;  // moves data; otherwise it only answers those who ask whether this rank is alive
  };

  MpiProgress(std::shared_ptr<RankGroup> group, int rank, const Options& options);
  /// Tells the others that this rank leaves.
  ~MpiProgress();
  MpiProgress(const MpiProgress&) = delete;

  Traffic& traffic() { return traffic_; }

  using MakeCollective = std::function<std::unique_ptr<Collective>(uint64_t number)>;
  std::shared_ptr<Pending> start(const Call& call, const MakeCollective& make);
  void send(const std::shared_ptr<Message>& message);
  void receive(const std::shared_ptr<Message>& message);

  /// `what` is said when there is no news for too long.
  void wait(const Pending& operation, const std::string& what);
  void abort(const std::string& text) noexcept;
  /// What this rank waits for. Any thread.
  Awaited awaited();

 private:
  /// A wait under way: when it last had news, and what it knows of those it waits for.
  class Stall;

  bool advance();
  void start_queued();
  void notice_departures();
  void fail_all(const std::string& text);
  void run_thread();
  void answer_questions();
  void wake_thread();
  std::set<int> awaited_ranks() const;
  std::string describe(const std::set<int>& ranks) const;
  void give_up(const std::set<int>& ranks, const std::string& text);

  std::shared_ptr<RankGroup> group_;
  Options options_;
  std::mutex mutex_;  // everything below, and MPI as far as this group goes
  Traffic traffic_;
  Messages messages_;
  uint64_t started_ever_ = 0, completed_ = 0;      // collectives
  std::deque<std::shared_ptr<Collective>> queue_;  // in order; the first few are under way
  std::size_t started_ = 0;                        // of the queue
  std::string failure_;
  std::string stalled_in_;           // what a wait that goes on for a while is for
  Clock::time_point stalled_since_;  // only while there is one
  uint64_t moves_ = 0;               // times that anything moved
  uint64_t idle_looks_ = 0;          // times that nothing did

  bool stopping_ = false;
  std::condition_variable has_work_;
  std::thread thread_;
};

}  // namespace tutti::mpi
