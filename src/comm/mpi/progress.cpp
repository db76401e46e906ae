#include "comm/mpi/progress.h"

#include <fmt/ranges.h>
#include <sched.h>
#include <sys/prctl.h>

#include <utility>

#include "base/clock.h"
#include "base/exit_note.h"

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
// A wait that lasts so long is told to those who look in from outside.
constexpr milliseconds kLongWait{100};
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
      traffic_(*group_, rank, [this] { return awaited_ranks(); }),
      messages_(traffic_) {
  if (group_->size() > 1) thread_ = std::thread([this] { options_.own_thread ? run_thread() : answer_questions(); });
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
      traffic_.control.abort(text, group_->job_rank(rank));
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
    has_work_.wait_for(lock, sign_interval(options_.limits),
                       [this] { return stopping_ || !queue_.empty() || !messages_.empty(); });
    bool moved = false;
    try {
      moved = advance();
      if (!moved) traffic_.control.advance();
    } catch (const std::exception& error) {
      fail_all(error.what());
    }
    if (queue_.empty() && messages_.empty()) continue;
    lock.unlock();
    if (moved)
      patience.renew();
    else
      patience.pass();
    lock.lock();
  }
}

void MpiProgress::answer_questions() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    has_work_.wait_for(lock, sign_interval(options_.limits), [this] { return stopping_; });
    try {
      if (!stopping_ && traffic_.control.advance()) ++moves_;
    } catch (const std::exception&) {
      // The next wait meets the same error, and says so.
    }
  }
}

/// While nothing moves, asks those that are waited for whether they are alive, again and again.
class MpiProgress::Stall {
 public:
  Stall(MpiProgress& progress, const std::string& what) : progress_(progress), what_(what) {}
  ~Stall() {
    if (!is_noted_) return;
    const std::lock_guard<std::mutex> lock(progress_.mutex_);
    progress_.stalled_in_.clear();
  }
  Stall(const Stall&) = delete;
  Stall& operator=(const Stall&) = delete;

  /// With the mutex, after each look at what has come.
  void look() {
    const auto now = clock_.look();
    if (std::exchange(moves_, progress_.moves_) != progress_.moves_) {
      news_ = asked_ = now;
      has_asked_ = false;
    }
    if (now - news_ < kLongWait) return;
    if (!std::exchange(is_noted_, true) || progress_.stalled_in_.empty()) {
      progress_.stalled_in_ = what_;
      progress_.stalled_since_ = Clock::now();
    }
    const WaitLimits& limits = progress_.options_.limits;
    if (limits.silent.count() == 0 || now - asked_ < limits.silent / 2) return;
    Control& control = progress_.traffic_.control;
    if (has_asked_) {
      const std::set<int> silent = control.unanswered();
      if (!silent.empty())
        return give_up(silent,
                       "has heard nothing from {} for {:g} s. The network or a process there "
                       "has stopped: look at the last lines of those ranks, or raise --comm-timeout.",
                       limits.silent);
      if (limits.late.count() > 0 && now - news_ >= limits.late)
        return give_up(control.idle().empty() ? progress_.awaited_ranks() : control.idle(),
                       "waits for {}, alive but not there for {:g} s. See what is done there (tutti status), or raise "
                       "--comm-timeout, of which this is ten times.",
                       limits.late);
    }
    control.ask(progress_.awaited_ranks());
    asked_ = now;
    has_asked_ = true;
  }

 private:
  void give_up(const std::set<int>& ranks, const char* text, milliseconds limit) {
    const std::string why =
        fmt::format(fmt::runtime(text), progress_.describe(ranks), std::chrono::duration<double>(limit).count());
    progress_.give_up(ranks, fmt::format("{}: rank {} {}", what_, progress_.traffic_.rank, why));
  }

  MpiProgress& progress_;
  const std::string& what_;
  AwakeClock clock_;
  uint64_t moves_ = 0;
  std::chrono::nanoseconds news_{0}, asked_{0};  // when anything moved, when the others were asked
  bool has_asked_ = false, is_noted_ = false;
};

void MpiProgress::wait(const Pending& operation, const std::string& what) {
  Patience patience;
  Stall stall(*this, what);
  while (!operation.is_finished()) {
    bool moved = false;
    if (const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock.owns_lock()) {
      try {
        moved = advance();
      } catch (const CommFailed& error) {
        traffic_.control.abort(fmt::format("rank {} of {} stopped: {}", traffic_.rank, traffic_.size(), error.what()),
                               -1);
        fail_all(error.what());
      }
      if (!operation.is_finished()) stall.look();
    }
    if (moved)
      patience.renew();
    else
      patience.pass();
  }
  operation.rethrow();
}

std::set<int> MpiProgress::awaited_ranks() const {
  if (queue_.empty()) return messages_.awaited();
  // The oldest collective is what holds up all others.
  const std::set<int> ranks = queue_.front()->awaited();
  return ranks.empty() ? traffic_.control.behind(completed_) : ranks;
}

Awaited MpiProgress::awaited() {
  // Whoever looks in must not hang where MPI does.
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  for (int attempt = 0; !lock.owns_lock() && attempt < 100; ++attempt) {
    std::this_thread::sleep_for(milliseconds(1));
    (void)lock.try_lock();
  }
  if (!lock.owns_lock() || stalled_in_.empty()) return {};
  Awaited now{stalled_in_, {}, seconds_since(stalled_since_)};
  for (const int rank : awaited_ranks()) now.ranks.push_back(group_->job_rank(rank));
  return now;
}

std::string MpiProgress::describe(const std::set<int>& ranks) const {
  if (ranks.empty()) return "the other ranks";
  return fmt::format("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), traffic_.size());
}

void MpiProgress::give_up(const std::set<int>& ranks, const std::string& text) {
  const int culprit = ranks.empty() ? -1 : group_->job_rank(*ranks.begin());
  if (culprit >= 0) note_culprit(culprit);
  Session::get().give_up();
  traffic_.control.abort(text, culprit);
  fail_all(text);
}

void MpiProgress::abort(const std::string& text) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    Session::get().give_up();
    // Where this rank stops because of another, that one is to blame.
    traffic_.control.abort(text, noted_culprit().value_or(group_->job_rank(traffic_.rank)));
    fail_all(*traffic_.control.failure());
  } catch (const std::exception&) {
    // Nothing that could be told to anybody.
  }
}

}  // namespace tutti::mpi
