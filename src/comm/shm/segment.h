#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/shm/doorbell.h"
#include "comm/shm/socket.h"

namespace tutti::shm {

constexpr int kMaxRanks = 64;
/// What one rank can put before the others in one round (see Rounds).
constexpr std::size_t kStageBytes = 512 * 1024;

/// How far a rank has come; one line per parity of the round, so that a rank can announce the next round while
/// slower ones still read this one.
struct alignas(64) RoundLine {
  std::atomic<uint64_t> arrived{0};
  Call call;  // of the operation whose first round this was
};

struct RankState {
  Doorbell bell;
  /// Bit r: rank r has put bytes into its channel to this rank, or taken some out of the channel from it.
  alignas(64) std::atomic<uint64_t> mail{0};
  RoundLine rounds[2];
  /// What others look at when they have waited long for this rank: a number that grows as long as its process runs, and
  /// the ranks (a bit for each) that it waits for itself.
  alignas(64) std::atomic<uint64_t> signs{0};
  std::atomic<uint64_t> awaits{0};
  alignas(64) std::atomic<uint32_t> has_left{0};
  int32_t pid = 0;
  cpu_set_t cpus{};  // on which it may run
};

/// One direction between two ranks: a ring of bytes. Positions count all bytes ever; the ring holds [taken, put).
struct ChannelHeader {
  alignas(64) std::atomic<uint64_t> put{0};    // changed by the sender
  alignas(64) std::atomic<uint64_t> taken{0};  // changed by the receiver
};

/// The memory that all ranks of a group share, as this process sees it: the state of each rank, two stages per rank
/// and a channel per pair. Most of it is never touched and takes no memory. Zeroed memory is a valid start.
class Segment {
 public:
  /// Rank 0 creates the file, the others get it from rank 0.
  static Fd create_file(int size);
  /// The last `servers` ranks are called parameter servers in messages; `job_ranks` is what the others are called
  /// there.
  Segment(Fd file, int rank, int size, int servers = 0, std::vector<int> job_ranks = {});
  ~Segment();
  Segment(const Segment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Fd& file() const { return file_; }
  /// Where the file goes on after the segment.
  std::size_t bytes() const { return bytes_; }

  RankState& state(int rank) { return control().ranks[rank]; }
  RankState& own() { return state(rank_); }
  std::byte* stage(int rank, int parity);
  ChannelHeader& channel(int from, int to);
  std::byte* ring(int from, int to);
  std::size_t ring_bytes() const { return ring_bytes_; }

  /// Ends communication for the whole group. The first failure wins, and every rank reports its text, and `culprit`
  /// (its number in the job; -1: nobody) in its exit note. Any thread.
  void fail(const std::string& text, int culprit = -1) noexcept;
  bool has_failed() { return control().failure.load() != 0; }
  /// The text of the failure; only after has_failed().
  std::string failure_text();

  /// "rank 2 of 4 (pid 123)", "parameter server 0 (pid 124)"; "rank 2 (pid 123)" where the group is a part of the job.
  std::string describe(int rank);
  /// What the job calls it.
  int job_rank(int rank) const;
  /// Whether there is a processor for every rank.
  bool has_cpu_per_rank();

 private:
  struct Control {
    alignas(64) std::atomic<uint32_t> failure{0};  // 0: none, 1: text is being written, 2: text is complete
    int32_t culprit = -1;                          // with the text
    char failure_text[1016] = {};
    RankState ranks[kMaxRanks];
  };
  struct Layout;

  Control& control() { return *reinterpret_cast<Control*>(base_); }

  Fd file_;
  int rank_;
  int size_;
  int servers_;
  std::vector<int> job_ranks_;
  std::size_t ring_bytes_;
  std::size_t bytes_;
  std::byte* base_;
};

}  // namespace tutti::shm
