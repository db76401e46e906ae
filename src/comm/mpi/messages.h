#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>

#include "comm/mpi/traffic.h"
#include "comm/pending.h"

namespace tutti::mpi {

/// A message from one rank to another under way.
struct Message : Pending {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  int tag = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

/// Messages between two ranks. What has come is looked at before it is received, so that a length which differs is an
/// error of this one receive and not of the group. Not thread-safe.
class Messages {
 public:
  explicit Messages(Traffic& traffic) : traffic_(traffic) {}

  void send(std::shared_ptr<Message> message);
  void receive(std::shared_ptr<Message> message);

  bool advance();
  bool empty() const { return under_way_.empty() && expected_.empty(); }
  /// Fails what waits for a rank that has left; true if there was any.
  bool notice_departures();
  bool fail_all(const std::string& text);
  std::set<int> awaited() const;

 private:
  struct Arrived {
    MPI_Message handle;
    std::size_t bytes;
  };
  using Source = std::pair<int, int>;  // rank, tag

  bool match_arrivals();
  void begin_receive(Message& message, Arrived arrived);
  int wire_tag(int from, int tag) const { return tag * 2 + traffic_.group.second(from); }

  Traffic& traffic_;
  std::list<std::shared_ptr<Message>> under_way_;  // with a request
  std::map<Source, std::deque<std::shared_ptr<Message>>> expected_;
  std::map<Source, std::deque<Arrived>> early_;  // nobody has asked for them yet
  std::map<int, std::vector<int>> ranks_of_;     // of each process: its first and, maybe, second rank
};

}  // namespace tutti::mpi
