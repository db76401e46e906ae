#include "comm/shm/peer_watch.h"

#include "base/proc_files.h"

namespace tutti::shm {
namespace {

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

bool has(RankBits ranks, int rank) { return (ranks >> rank & 1) != 0; }

/// What the kernel knows about a process that gives no sign of life.
std::string reason_of_silence(int32_t pid) {
  const auto stat = process_stat(pid);
  if (!stat) return "";
  if (stat->state == 'T' || stat->state == 't') return " A signal such as SIGSTOP has stopped its process.";
  if (stat->state == 'D') return " Its process hangs in the kernel: a disk or network file system does not answer.";
  return "";
}

}  // namespace

PeerWatch::PeerWatch(Segment& segment, const WaitLimits& limits)
    : segment_(segment),
      limits_(limits),
      signs_(static_cast<std::size_t>(segment.size())),
      silent_since_(static_cast<std::size_t>(segment.size())) {}

void PeerWatch::end_stall() {
  is_stalled_ = false;
  segment_.own().awaits.store(0, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  note_ = {};
}

void PeerWatch::begin_stall(RankBits awaited, const std::function<std::string()>& call) {
  is_stalled_ = true;
  awaited_ = awaited;
  since_ = clock_.look();
  segment_.own().awaits.store(awaited, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  note_ = {call(), {}, 0};
  for (int r = 0; r < segment_.size(); ++r) {
    if (!has(awaited, r)) continue;
    note_.ranks.push_back(r);
    signs_[static_cast<std::size_t>(r)] = segment_.state(r).signs.load(std::memory_order_relaxed);
    silent_since_[static_cast<std::size_t>(r)] = since_;
  }
  noted_ = Clock::now();
}

bool PeerWatch::look(RankBits awaited, const std::function<std::string()>& call) {
  if (awaited == 0) {
    renew();
    return false;
  }
  if (!is_stalled_ || awaited != awaited_) begin_stall(awaited, call);  // a rank that has come is news, too
  const auto now = clock_.look();
  for (int r = 0; r < segment_.size(); ++r) {
    if (!has(awaited, r)) continue;
    const auto i = static_cast<std::size_t>(r);
    const uint64_t signs = segment_.state(r).signs.load(std::memory_order_relaxed);
    if (signs != signs_[i]) {
      signs_[i] = signs;
      silent_since_[i] = now;
    } else if (limits_.silent.count() > 0 && now - silent_since_[i] >= limits_.silent) {
      give_up_silent(r, now - silent_since_[i]);
      return true;
    }
  }
  if (limits_.late.count() == 0 || now - since_ < limits_.late) return false;
  give_up_late(awaited, now - since_);
  return true;
}

RankBits PeerWatch::late_ones(RankBits awaited) {
  RankBits seen = RankBits{1} << segment_.rank(), late = 0;
  for (RankBits left = awaited; left != 0;) {
    const int r = __builtin_ctzll(left);
    seen |= RankBits{1} << r;
    const RankBits next = segment_.state(r).awaits.load(std::memory_order_relaxed);
    if (next == 0) late |= RankBits{1} << r;
    left = (left | next) & ~seen;
  }
  return late == 0 ? awaited : late;
}

void PeerWatch::give_up_silent(int rank, std::chrono::nanoseconds silent) {
  segment_.fail(
      fmt::format("{} has stopped: no sign of life for {:.1f} s, while {} waits for it in {}.{} If a rank may "
                  "be away for so long, raise --comm-timeout.",
                  segment_.describe(rank), seconds(silent), segment_.describe(segment_.rank()), awaited().call,
                  reason_of_silence(segment_.state(rank).pid)),
      segment_.job_rank(rank));
}

void PeerWatch::give_up_late(RankBits awaited, std::chrono::nanoseconds late) {
  const RankBits ranks = late_ones(awaited);
  const int first = __builtin_ctzll(ranks);
  const bool is_one = (ranks & (ranks - 1)) == 0;
  segment_.fail(fmt::format("{} {} alive but {} not come for {:.1f} s, while {} waits in {}. See what {} (tutti "
                            "status), or raise --comm-timeout, of which this is ten times.",
                            describe(ranks), is_one ? "is" : "are", is_one ? "has" : "have", seconds(late),
                            segment_.describe(segment_.rank()), this->awaited().call, is_one ? "it does" : "they do"),
                segment_.job_rank(first));
}

std::string PeerWatch::describe(RankBits ranks) {
  std::string text;
  for (int r = 0; r < segment_.size(); ++r)
    if (has(ranks, r)) text += (text.empty() ? "" : ", ") + segment_.describe(r);
  return text;
}

Awaited PeerWatch::awaited() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Awaited now = note_;
  if (!now.call.empty()) now.seconds = seconds_since(noted_);
  return now;
}

}  // namespace tutti::shm
