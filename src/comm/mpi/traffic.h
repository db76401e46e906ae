#pragma once

#include <set>

#include "comm/mpi/control.h"

namespace tutti::mpi {

/// What all operations of a communicator share: the group, who this rank is in it, and how many messages have gone to
/// and come from each rank.
struct Traffic {
  RankGroup& group;
  int rank;
  Control control;
  std::vector<uint64_t> sent, received;

  Traffic(RankGroup& group, int rank, std::function<std::set<int>()> awaited)
      : group(group),
        rank(rank),
        control(group, rank, std::move(awaited)),
        sent(static_cast<std::size_t>(group.size()), 0),
        received(static_cast<std::size_t>(group.size()), 0) {}

  int size() const { return group.size(); }

  /// Has `peer` left for good, with everything that it ever sent to this rank taken in?
  bool is_silent(int peer) const {
    return control.has_left(peer) && received[static_cast<std::size_t>(peer)] >= control.sent_before_leaving(peer);
  }
};

/// Requests of one operation that are under way, each with what to do when it completes.
class Requests {
 public:
  struct Entry {
    int peer = 0;
    bool is_receive = false;
    int phase = 0;
    std::size_t chunk = 0;
    bool is_acknowledged = false;  // a send: completes only when the receiver has begun to take it
  };

  explicit Requests(Traffic& traffic) : traffic_(traffic) {}

  void send(MPI_Comm comm, int tag, const void* data, std::size_t bytes, const Entry& entry);
  void receive(MPI_Comm comm, int tag, void* data, std::size_t bytes, const Entry& entry);

  /// Those that have completed since the last time. The list stays valid until the next call.
  const std::vector<Entry>& take_completed();

  bool empty() const { return requests_.empty(); }
  /// Ranks whose messages are awaited, or, where all have come, that have not taken what was sent.
  std::set<int> awaited() const;
  bool awaits_silent_rank() const;
  /// Lets MPI forget what can be forgotten; receives are cancelled.
  void abandon();

 private:
  Traffic& traffic_;
  std::vector<MPI_Request> requests_;
  std::vector<Entry> entries_;  // of each request
  std::vector<int> indices_;
  std::vector<Entry> completed_;
};

}  // namespace tutti::mpi
