#pragma once

#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "comm/call.h"
#include "comm/mpi/session.h"

namespace tutti::mpi {

/// What ranks tell each other beside the data: what they call (to rank 0, which compares), that the group is aborted,
/// that they leave; and, asked, that they are there. Not thread-safe.
class Control {
 public:
  /// `awaited`: whom this rank waits for, to tell others.
  Control(RankGroup& group, int rank, std::function<std::set<int>()> awaited);
  ~Control();
  Control(const Control&) = delete;

  /// Before the n-th collective of this rank. `may_wait`: no need to tell unless it stalls, since when it is complete
  /// all ranks are known to have called it.
  void announce(uint64_t number, const Call& call, bool may_wait);
  /// The n-th, announced as one that may wait, is complete.
  void complete(uint64_t number);
  /// Tells what has waited for a while.
  void tell_what_stalls();
  /// To everybody. `text` is what every rank will report, and `culprit` (a process of the job; -1: nobody) whom it will
  /// blame.
  void abort(const std::string& text, int culprit);
  /// To everybody, as the last thing; `sent[r]`: how many messages rank r was sent in all.
  void leave(const std::vector<uint64_t>& sent);

  /// Asks ranks for a sign of life, which each gives as long as its process runs, with whom it waits for itself; these
  /// are asked in turn.
  void ask(const std::set<int>& ranks);
  /// Those that were asked and have not answered.
  std::set<int> unanswered() const;
  /// Those that have answered that they wait for nobody.
  const std::set<int>& idle() const { return idle_; }

  /// On rank 0: is every rank known to call the same as the n-th collective? Elsewhere true.
  bool is_agreed(uint64_t number) const { return rank_ != 0 || forgotten_ > number; }

  /// On rank 0: the ranks that are not known to call the same as the n-th.
  std::set<int> behind(uint64_t number) const;

  /// Takes in what has come; true if that was any news: a question or an answer is none.
  bool advance();

  /// The text of an abort that has come, or of a difference that rank 0 has found.
  const std::optional<std::string>& failure() const { return failure_; }
  bool has_left(int rank) const { return departures_[static_cast<std::size_t>(rank)].has_value(); }
  /// How many messages it had sent to this rank; only after has_left().
  uint64_t sent_before_leaving(int rank) const { return *departures_[static_cast<std::size_t>(rank)]; }

 private:
  struct Message {
    enum Kind : int32_t { kCall, kAbort, kLeave, kAsk, kAnswer } kind = kCall;
    int32_t from = 0;
    uint64_t number = 0;  // of a call; of messages sent before leaving; of an abort, whom to blame and 1
    Call call;
    char text[1000] = {};  // of an abort; in an answer, the ranks that are awaited

    void write_ranks(const std::set<int>& ranks);
    std::set<int> read_ranks() const;
  };

  struct Sending {
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  struct Untold {
    uint64_t number;
    Call call;
    Clock::time_point since;
  };
  struct OwnCall {
    Call call;
    bool is_complete = false;  // so all have called it
  };
  struct NumberedCall {
    uint64_t number;
    Call call;
  };

  void tell(uint64_t number, const Call& call);
  void tell_all();
  void forget_agreed();
  void post_receive();
  void send(const Message& message, int to);
  void send_to_all(const Message& message);
  bool take(const Message& message);
  void ask(int rank);
  void compare_calls(int rank);

  RankGroup& group_;
  int rank_;
  Message arriving_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  std::list<Sending> leaving_;  // a list: MPI keeps the addresses
  std::function<std::set<int>()> awaited_;
  std::set<int> asked_, answered_, idle_;
  std::vector<std::optional<uint64_t>> departures_;
  std::optional<std::string> failure_;
  int culprit_ = -1;
  std::deque<Untold> untold_;
  // On rank 0: its own calls from number `forgotten_` on, those that others have told and that were not yet compared,
  // and up to which number each rank's are known to be the same.
  std::deque<OwnCall> own_calls_;
  std::vector<std::deque<NumberedCall>> told_;
  std::vector<uint64_t> agreed_;
  uint64_t forgotten_ = 0;
};

}  // namespace tutti::mpi
