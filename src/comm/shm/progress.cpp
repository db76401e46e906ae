#include "comm/shm/progress.h"

#include <sched.h>

#include "base/clock.h"

namespace tutti::shm {
namespace {

// No wake-up is ever lost; should one be after all, it costs a tenth of a second and not the run.
constexpr std::chrono::milliseconds kLongestSleep{100};
// Below this a wait gives its processor to other ranks that may be waiting for one before it sleeps.
constexpr std::chrono::microseconds kShortSpin{10};

/// How a wait passes its time until it goes to sleep.
class Patience {
 public:
  explicit Patience(std::chrono::microseconds spin) : spin_(spin) {}

  void renew() { rounds_ = 0; }
  /// False when it is time to sleep.
  bool lasts() {
    if (rounds_ == 0) start_ = Clock::now();
    ++rounds_;
    pause_briefly();
    if (rounds_ % 16 != 0 || Clock::now() - start_ < spin_) return true;
    if (spin_ >= kShortSpin || yields_ == kYields) {
      yields_ = 0;
      rounds_ = 0;
      return false;
    }
    ++yields_;
    sched_yield();
    return true;
  }

 private:
  static constexpr int kYields = 2;

  std::chrono::microseconds spin_;
  Clock::time_point start_;
  unsigned rounds_ = 0;
  int yields_ = 0;
};

}  // namespace

ShmProgress::ShmProgress(Segment& segment, ShmProgressOptions options)
    : segment_(segment), options_(options), collectives_(segment), channels_(segment), watch_(segment, options.limits) {
  if (options_.own_thread) {
    thread_ = std::thread([this] { advance_until([this] { return stopping_.load(); }); });
  }
}

ShmProgress::~ShmProgress() {
  if (thread_.joinable()) {
    stopping_.store(true);
    segment_.own().bell.ring_hard();
    thread_.join();
    take_posted();
  }
  const std::string text = fmt::format("rank {} closed its communicator before this was complete.", segment_.rank());
  collectives_.fail_all(text);
  channels_.fail_all(text);
}

void ShmProgress::post(std::shared_ptr<Collective> collective) {
  post([this, collective = std::move(collective)] { collectives_.post(collective); });
}

void ShmProgress::post_send(std::shared_ptr<PointToPoint> send) {
  post([this, send = std::move(send)] { channels_.post_send(send); });
}

void ShmProgress::post_receive(std::shared_ptr<PointToPoint> receive) {
  post([this, receive = std::move(receive)] { channels_.post_receive(receive); });
}

void ShmProgress::post(std::function<void()> task) {
  if (!options_.own_thread) {
    task();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
  }
  has_posted_.store(true);
  segment_.own().bell.ring();
}

bool ShmProgress::take_posted() {
  if (!has_posted_.load()) return false;
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    has_posted_.store(false);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
  return !tasks.empty();
}

bool ShmProgress::advance() {
  bool moved = take_posted();
  // Looked at first: what all had done before the failure still counts, so that a barrier which everybody has reached
  // does not fail because the next one did. Nothing new begins.
  const bool has_failed = segment_.has_failed();
  moved |= collectives_.advance(!has_failed);
  moved |= channels_.advance();
  if (has_failed) {
    const std::string text = segment_.failure_text();
    moved |= collectives_.fail_all(text);
    moved |= channels_.fail_all(text);
  }
  return moved;
}

bool ShmProgress::notice_departures() { return collectives_.notice_departures() || channels_.notice_departures(); }

void ShmProgress::watch_peers() {
  const RankBits in_collective = collectives_.awaited();
  watch_.look(in_collective != 0 ? in_collective : channels_.awaited(),
              [&] { return in_collective != 0 ? collectives_.call() : channels_.call(); });
}

void ShmProgress::tell_caller() {
  if (!options_.own_thread) return;
  // A caller holds the mutex from its look at the operation until it sleeps, so that it cannot miss this.
  { const std::lock_guard lock(mutex_); }
  moved_.notify_all();
}

template <typename Condition>
void ShmProgress::advance_until(Condition condition) {
  Doorbell& bell = segment_.own().bell;
  Patience patience(options_.spin);
  while (!condition()) {
    if (advance()) {
      tell_caller();
      patience.renew();
      watch_.renew();
      continue;
    }
    if (patience.lasts()) continue;
    const uint32_t ticket = bell.prepare_to_sleep();
    if (advance() || notice_departures()) {
      bell.stay_awake();
      tell_caller();
    } else if (condition()) {
      bell.stay_awake();
    } else {
      bell.sleep(ticket, kLongestSleep);
      watch_peers();
    }
  }
}

void ShmProgress::wait(const Pending& operation) {
  if (!options_.own_thread) {
    advance_until([&] { return operation.is_finished(); });
  } else if (!operation.is_finished()) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return operation.is_finished(); });
  }
  operation.rethrow();
}

}  // namespace tutti::shm
