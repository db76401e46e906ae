#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "status/rank_status.h"

namespace tutti {

/// What this process, a rank, is doing, for those who look in from outside: `tutti status` through a file that a thread
/// of the board writes twice a second, and whoever sends SIGQUIT, on stderr. Any thread may tell it anything; what is
/// told in every step or transfer is a store and nothing else. One that is not open shows nothing.
class StatusBoard {
 public:
  /// Of this process.
  static StatusBoard& get();
  StatusBoard() = default;
  ~StatusBoard();
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;

  /// Begins to show. From the main thread, before those that compute: they inherit that SIGQUIT does not interrupt
  /// them. A file that cannot be written is a pity and no error.
  void open(const std::filesystem::path& file, const RankStatus& who);
  /// Ends it. A rank that has done its work leaves no file behind, any other how it ended.
  void close(int exit_code, const std::string& error);

  RunPhase phase() const { return phase_.load(std::memory_order_relaxed); }
  void enter(RunPhase phase);
  void set_run(const std::string& folder);
  void set_transport(const std::string& name);
  /// This process is a parameter server, of a job of so many workers.
  void be_server(int workers);
  void saved_checkpoint(int64_t step);
  void step_done(int64_t step, int64_t steps, int64_t samples) {
    step_.store(step, std::memory_order_relaxed);
    steps_.store(steps, std::memory_order_relaxed);
    samples_.fetch_add(samples, std::memory_order_relaxed);
  }
  /// Number `index` of those named last is under way; -1: none is.
  void transfer(std::ptrdiff_t index) { transfer_.store(index, std::memory_order_relaxed); }
  void name_transfers(std::vector<std::string> names);

  /// While it lives, `awaited` is asked what this rank waits for.
  class Watch {
   public:
    Watch(StatusBoard& board, std::function<Awaited()> awaited);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    StatusBoard& board_;
    std::list<std::function<Awaited()>>::iterator place_;
  };

  RankStatus now();

 private:
  void run();
  void write();
  void print();
  double rate();

  std::atomic<RunPhase> phase_{RunPhase::starting};
  std::atomic<int64_t> step_{0}, steps_{0}, samples_{0};
  std::atomic<std::ptrdiff_t> transfer_{-1};

  std::mutex mutex_;  // all that follows
  RankStatus known_;  // what is told rarely
  std::vector<std::string> transfers_;
  std::list<std::function<Awaited()>> watched_;
  std::deque<std::pair<Clock::time_point, int64_t>> made_;  // samples, when they had grown

  std::filesystem::path file_;
  std::size_t written_ = 0;  // bytes of the file
  Fd wake_;                  // the thread, to stop or to print
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// A phase that lasts as long as this: then the one before goes on.
class PhaseSpan {
 public:
  explicit PhaseSpan(RunPhase phase) : before_(StatusBoard::get().phase()) { StatusBoard::get().enter(phase); }
  ~PhaseSpan() { StatusBoard::get().enter(before_); }
  PhaseSpan(const PhaseSpan&) = delete;
  PhaseSpan& operator=(const PhaseSpan&) = delete;

 private:
  RunPhase before_;
};

}  // namespace tutti
