#include "comm/mpi/progress.h"

#include <fmt/ranges.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"

namespace tutti::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Collectives that share the link; later ones wait, so that the first are through first.
constexpr std::size_t kUnderWay = 2;
// A wait without news first gives its processor to whoever wants it, and then sleeps between looks.
constexpr microseconds kYieldFor{200};
constexpr microseconds kNap{30};
// Looks without news before one at what ranks tell each other beside the data.
constexpr uint64_t kIdleLooks = 4;
// What a rank has sent may take so long to be taken in after it has left.
constexpr milliseconds kLeaveTime{300};

/// How a wait passes its time between looks.
class Patience {
 public:
  void renew() { is_idle_ = false; }
  void pass() {
    if (!is_idle_) {
      is_idle_ = true;
      since_ = Clock::now();
    }
    if (Clock::now() - since_ < kYieldFor) {
      sched_yield();
    } else {
      // Naps are as short as asked for only without the kernel's usual slack.
      static thread_local const int has_fine_timer = ::prctl(PR_SET_TIMERSLACK, 1000);
      (void)has_fine_timer;
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  bool is_idle_ = false;
  Clock::time_point since_;
};

}  // namespace

MpiProgress::MpiProgress(std::shared_ptr<RankGroup> group, int rank, const Options& options)
    : group_(std::move(group)),
      options_(options),
      traffic_(*group_, rank, [this] { return awaited(); }),
      messages_(traffic_) {
  if (options_.own_thread) thread_ = std::thread([this] { run_thread(); });
}

MpiProgress::~MpiProgress() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    const auto start = Clock::now();
    while (failure_.empty() && (!queue_.empty() || !messages_.empty()) && Clock::now() - start < kLeaveTime) {
      if (!advance()) sched_yield();
    }
    fail_all(fmt::format("rank {} closed its communicator before this was complete.", traffic_.rank));
    traffic_.control.leave(traffic_.sent);
  } catch (const std::exception&) {
    // The others will see that this rank is gone by its silence.
  }
}

std::shared_ptr<Pending> MpiProgress::start(const Call& call, const MakeCollective& make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = started_ever_++;
  std::shared_ptr<Collective> collective = make(number);
  if (!failure_.empty()) {
    collective->fail(failure_);
    return collective;
  }
  traffic_.control.announce(number, call, collective->needs_all());
  queue_.push_back(collective);
  start_queued();
  wake_thread();
  return collective;
}

void MpiProgress::send(const std::shared_ptr<Message>& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return message->fail(failure_);
  messages_.send(message);
  wake_thread();
}

void MpiProgress::receive(const std::shared_ptr<Message>& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return message->fail(failure_);
  messages_.receive(message);
  wake_thread();
}

void MpiProgress::wake_thread() {
  if (options_.own_thread) has_work_.notify_one();
}

void MpiProgress::start_queued() {
  while (started_ < std::min(kUnderWay, queue_.size())) queue_[started_++]->start();
}

bool MpiProgress::advance() {
  bool moved = false;
  // What all had done before a failure still counts, so that a barrier which everybody has reached does not fail
  // because the next one did.
  for (std::size_t i = 0; i < started_; ++i)
    if (!queue_[i]->is_through()) moved |= queue_[i]->advance();
  // In order: a barrier says that what came before it is complete.
  while (!queue_.empty() && queue_.front()->is_through()) {
    if (queue_.front()->needs_all()) traffic_.control.complete(completed_);
    ++completed_;
    queue_.front()->succeed();
    queue_.pop_front();
    --started_;
  }
  if (!messages_.empty()) moved |= messages_.advance();
  // Every look at MPI takes time, and here is rarely any news; a caller in a hurry finds its data sooner.
  if (!moved && ++idle_looks_ % kIdleLooks == 0) {
    traffic_.control.tell_what_stalls();
    moved |= traffic_.control.advance();
  }
  if (traffic_.control.failure()) {
    fail_all(*traffic_.control.failure());
  } else {
    if (!moved) notice_departures();
    start_queued();
  }
  if (moved) ++moves_;
  return moved;
}

void MpiProgress::notice_departures() {
  for (std::size_t i = 0; i < started_; ++i) {
    if (!queue_[i]->awaits_silent_rank()) continue;
    for (const int rank : queue_[i]->awaited()) {
      if (!traffic_.is_silent(rank)) continue;
      const std::string text = fmt::format("rank {} of {} has left while rank {} waits for it in {}.", rank,
                                           traffic_.size(), traffic_.rank, queue_[i]->call().describe());
      traffic_.control.abort(text);
      return fail_all(text);
    }
  }
  messages_.notice_departures();
}

void MpiProgress::fail_all(const std::string& text) {
  if (failure_.empty()) failure_ = text;
  for (const auto& collective : queue_) {
    collective->fail(failure_);
    collective->abandon();
  }
  queue_.clear();
  started_ = 0;
  messages_.fail_all(failure_);
}

void MpiProgress::run_thread() {
  Patience patience;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    has_work_.wait(lock, [this] { return stopping_ || !queue_.empty() || !messages_.empty(); });
    bool moved = false;
    try {
      moved = advance();
    } catch (const std::exception& error) {
      fail_all(error.what());
    }
    lock.unlock();
    if (moved)
      patience.renew();
    else
      patience.pass();
    lock.lock();
  }
}

void MpiProgress::wait(const Pending& operation, const std::string& what) {
  Patience patience;
  auto last_news = Clock::now();
  bool has_asked = false;
  uint64_t moves = 0;
  while (!operation.is_finished()) {
    bool moved = false;
    if (std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock.owns_lock()) {
      try {
        moved = advance();
      } catch (const CommFailed& error) {
        traffic_.control.abort(fmt::format("rank {} of {} stopped: {}", traffic_.rank, traffic_.size(), error.what()));
        fail_all(error.what());
      }
      if (moves_ != moves) {
        moves = moves_;
        last_news = Clock::now();
        has_asked = false;
      }
      if (!has_asked && options_.timeout.count() > 0 && Clock::now() - last_news > options_.timeout / 2) {
        traffic_.control.ask(awaited());
        has_asked = true;
      }
    }
    if (moved) {
      patience.renew();
      continue;
    }
    patience.pass();
    if (options_.timeout.count() > 0 && Clock::now() - last_news > options_.timeout) give_up(operation, what);
  }
  operation.rethrow();
}

std::set<int> MpiProgress::awaited() const {
  // The oldest collective is what holds up all others.
  return queue_.empty() ? messages_.awaited() : queue_.front()->awaited();
}

std::string MpiProgress::missing() const {
  // Those that wait like this rank have not stopped: they wait for the same ones, or for one that waits for those.
  std::set<int> ranks = traffic_.control.unanswered();
  if (ranks.empty()) ranks = awaited();
  return fmt::format("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), traffic_.size());
}

void MpiProgress::give_up(const Pending& operation, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (operation.is_finished()) return;
  const std::string text = fmt::format(
      "{}: rank {} has heard nothing from {} for {} s. The network or a process there has stopped: look at the "
      "last lines of those ranks, or raise --comm-timeout.",
      what, traffic_.rank, missing(),
      std::chrono::duration_cast<std::chrono::duration<double>>(options_.timeout).count());
  Session::get().give_up();
  traffic_.control.abort(text);
  fail_all(text);
}

void MpiProgress::abort(const std::string& text) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    Session::get().give_up();
    traffic_.control.abort(text);
    fail_all(*traffic_.control.failure());
  } catch (const std::exception&) {
    // Nothing that could be told to anybody.
  }
}

}  // namespace tutti::mpi
