#include "comm/mpi/messages.h"

#include "tutti/error.h"

namespace tutti::mpi {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// `bytes` as one element of a type: MPI counts in int, and a message may be longer than 2 GB.
class LongBytes {
 public:
  explicit LongBytes(std::size_t bytes) {
    if (bytes < (std::size_t{1} << 30)) {
      count_ = static_cast<int>(bytes);
      return;
    }
    MPI_Datatype piece = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(kPieceBytes), MPI_BYTE, &piece);
    int lengths[2] = {static_cast<int>(bytes / kPieceBytes), static_cast<int>(bytes % kPieceBytes)};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes / kPieceBytes * kPieceBytes)};
    MPI_Datatype types[2] = {piece, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, places, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&piece);
    count_ = 1;
  }
  ~LongBytes() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);  // operations under way keep it
  }
  LongBytes(const LongBytes&) = delete;

  MPI_Datatype type() const { return type_; }
  int count() const { return count_; }

 private:
  MPI_Datatype type_ = MPI_BYTE;
  int count_ = 0;
};

}  // namespace

void Messages::send(std::shared_ptr<Message> message) {
  const RankGroup& group = traffic_.group;
  const LongBytes length(message->bytes);
  check(
      MPI_Isend(message->data, length.count(), length.type(), group.process(message->peer),
                wire_tag(traffic_.rank, message->tag), group.messages[group.second(message->peer)], &message->request),
      "MPI_Isend");
  ++traffic_.sent[static_cast<std::size_t>(message->peer)];
  under_way_.push_back(std::move(message));
}

void Messages::receive(std::shared_ptr<Message> message) {
  const Source source{message->peer, message->tag};
  const auto early = early_.find(source);
  if (early == early_.end()) {
    expected_[source].push_back(std::move(message));
    return;
  }
  const Arrived arrived = early->second.front();
  early->second.pop_front();
  if (early->second.empty()) early_.erase(early);
  begin_receive(*message, arrived);
  under_way_.push_back(std::move(message));
}

bool Messages::match_arrivals() {
  if (ranks_of_.empty())
    for (int r = 0; r < traffic_.size(); ++r) ranks_of_[traffic_.group.process(r)].push_back(r);
  bool moved = false;
  while (true) {
    int has_come = 0;
    Arrived arrived{};
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, traffic_.group.messages[traffic_.group.second(traffic_.rank)],
                      &has_come, &arrived.handle, &status),
          "MPI_Improbe");
    if (has_come == 0) return moved;
    moved = true;
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    arrived.bytes = static_cast<std::size_t>(bytes);
    const int from = ranks_of_.at(status.MPI_SOURCE)[static_cast<std::size_t>(status.MPI_TAG % 2)];
    const Source source{from, status.MPI_TAG / 2};
    const auto waiting = expected_.find(source);
    if (waiting == expected_.end()) {
      early_[source].push_back(arrived);
      continue;
    }
    std::shared_ptr<Message> message = waiting->second.front();
    waiting->second.pop_front();
    if (waiting->second.empty()) expected_.erase(waiting);
    begin_receive(*message, arrived);
    under_way_.push_back(std::move(message));
  }
}

void Messages::begin_receive(Message& message, Arrived arrived) {
  ++traffic_.received[static_cast<std::size_t>(message.peer)];
  if (arrived.bytes == message.bytes) {
    const LongBytes length(message.bytes);
    check(MPI_Imrecv(message.data, length.count(), length.type(), &arrived.handle, &message.request), "MPI_Imrecv");
    return;
  }
  std::vector<std::byte> unwanted(arrived.bytes);
  const LongBytes length(arrived.bytes);
  check(MPI_Mrecv(unwanted.data(), length.count(), length.type(), &arrived.handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
  message.fail_alone(fmt::format("rank {} sent {} bytes with tag {} to rank {}, which expects {} bytes.", message.peer,
                                 arrived.bytes, message.tag, traffic_.rank, message.bytes));
}

bool Messages::advance() {
  bool moved = match_arrivals();
  for (auto it = under_way_.begin(); it != under_way_.end();) {
    int is_done = 1;
    if ((*it)->request != MPI_REQUEST_NULL) check(MPI_Test(&(*it)->request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done == 0) {
      ++it;
      continue;
    }
    if (!(*it)->is_finished()) (*it)->succeed();
    it = under_way_.erase(it);
    moved = true;
  }
  return moved;
}

bool Messages::notice_departures() {
  bool any = false;
  for (auto it = expected_.begin(); it != expected_.end();) {
    const int peer = it->first.first;
    // What arrived early was counted as received only when it was asked for.
    if (!traffic_.is_silent(peer)) {
      ++it;
      continue;
    }
    for (const auto& message : it->second)
      message->fail(fmt::format("rank {} of {} has left while rank {} waits for its message with tag {}.", peer,
                                traffic_.size(), traffic_.rank, it->first.second));
    it = expected_.erase(it);
    any = true;
  }
  return any;
}

bool Messages::fail_all(const std::string& text) {
  if (empty()) return false;
  for (auto& [source, waiting] : expected_)
    for (const auto& message : waiting) message->fail(text);
  expected_.clear();
  for (const auto& message : under_way_) {
    message->fail(text);
    if (message->request != MPI_REQUEST_NULL) MPI_Request_free(&message->request);
  }
  under_way_.clear();
  return true;
}

std::set<int> Messages::awaited() const {
  std::set<int> ranks;
  for (const auto& entry : expected_) ranks.insert(entry.first.first);
  if (!ranks.empty()) return ranks;
  for (const auto& message : under_way_) ranks.insert(message->peer);
  return ranks;
}

}  // namespace tutti::mpi
