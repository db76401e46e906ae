#include "comm/mpi/traffic.h"

namespace tutti::mpi {

void Requests::send(MPI_Comm comm, int tag, const void* data, std::size_t bytes, const Entry& entry) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto isend = entry.is_acknowledged ? MPI_Issend : MPI_Isend;
  check(isend(data, static_cast<int>(bytes), MPI_BYTE, traffic_.group.process(entry.peer), tag, comm, &request),
        "MPI_Isend");
  ++traffic_.sent[static_cast<std::size_t>(entry.peer)];
  requests_.push_back(request);
  entries_.push_back(entry);
}

void Requests::receive(MPI_Comm comm, int tag, void* data, std::size_t bytes, const Entry& entry) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, traffic_.group.process(entry.peer), tag, comm, &request),
        "MPI_Irecv");
  requests_.push_back(request);
  entries_.push_back(entry);
  entries_.back().is_receive = true;
}

const std::vector<Requests::Entry>& Requests::take_completed() {
  completed_.clear();
  if (requests_.empty()) return completed_;
  indices_.resize(requests_.size());
  int count = 0;
  check(
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), MPI_STATUSES_IGNORE),
      "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return completed_;
  for (int i = 0; i < count; ++i) {
    const Entry& entry = entries_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
    if (entry.is_receive) ++traffic_.received[static_cast<std::size_t>(entry.peer)];
    completed_.push_back(entry);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    entries_[kept++] = entries_[i];
  }
  requests_.resize(kept);
  entries_.resize(kept);
  return completed_;
}

std::set<int> Requests::awaited() const {
  std::set<int> senders, receivers;
  for (const Entry& entry : entries_) (entry.is_receive ? senders : receivers).insert(entry.peer);
  return senders.empty() ? receivers : senders;
}

bool Requests::awaits_silent_rank() const {
  for (const Entry& entry : entries_)
    if (entry.is_receive && traffic_.is_silent(entry.peer)) return true;
  return false;
}

void Requests::abandon() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (entries_[i].is_receive) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  entries_.clear();
}

}  // namespace tutti::mpi
