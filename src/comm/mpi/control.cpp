#include "comm/mpi/control.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sstream>

#include "base/exit_note.h"

namespace tutti::mpi {
namespace {

// So long nobody needs to know what a rank calls.
constexpr std::chrono::microseconds kQuietTime{200};

}  // namespace

void Control::Message::write_ranks(const std::set<int>& ranks) {
  std::string list;
  for (const int rank : ranks) {
    const std::string number = std::to_string(rank) + " ";
    if (list.size() + number.size() < sizeof(text)) list += number;  // some, where there are very many
  }
  std::strncpy(text, list.c_str(), sizeof(text) - 1);
}

std::set<int> Control::Message::read_ranks() const {
  std::istringstream list{std::string(text)};
  return {std::istream_iterator<int>(list), std::istream_iterator<int>()};
}

Control::Control(RankGroup& group, int rank, std::function<std::set<int>()> awaited)
    : group_(group),
      rank_(rank),
      awaited_(std::move(awaited)),
      departures_(static_cast<std::size_t>(group.size())),
      told_(static_cast<std::size_t>(group.size())),
      agreed_(static_cast<std::size_t>(group.size()), 0) {
  post_receive();
}

Control::~Control() {
  if (receive_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&receive_);
    MPI_Wait(&receive_, MPI_STATUS_IGNORE);
  }
  // Small messages leave at once; one that has not by now has nowhere to go, and MPI still knows its address: it stays.
  static std::mutex mutex;
  static std::list<Sending> stranded;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    int is_done = 0;
    MPI_Test(&it->request, &is_done, MPI_STATUS_IGNORE);
    const auto next = std::next(it);
    if (is_done == 0) {
      const std::lock_guard<std::mutex> lock(mutex);
      stranded.splice(stranded.end(), leaving_, it);
    }
    it = next;
  }
}

void Control::announce(uint64_t number, const Call& call, bool may_wait) {
  if (group_.size() == 1) {
    ++forgotten_;
  } else if (rank_ == 0) {
    own_calls_.push_back({call});
    for (int r = 1; r < group_.size(); ++r) compare_calls(r);
  } else if (may_wait) {
    untold_.push_back({number, call, Clock::now()});
  } else {
    tell_all();
    tell(number, call);
  }
}

void Control::complete(uint64_t number) {
  if (group_.size() == 1) return;
  if (rank_ != 0) {
    while (!untold_.empty() && untold_.front().number <= number) untold_.pop_front();
    return;
  }
  if (number >= forgotten_) own_calls_[number - forgotten_].is_complete = true;
  for (int r = 1; r < group_.size(); ++r) compare_calls(r);
}

void Control::tell_what_stalls() {
  if (!untold_.empty() && Clock::now() - untold_.front().since > kQuietTime) tell_all();
}

void Control::tell_all() {
  for (const Untold& untold : untold_) tell(untold.number, untold.call);
  untold_.clear();
}

void Control::tell(uint64_t number, const Call& call) {
  Message message;
  message.number = number;
  message.call = call;
  send(message, 0);
}

void Control::abort(const std::string& text, int culprit) {
  if (!failure_) {
    failure_ = text;
    culprit_ = culprit;
  }
  Message message;
  message.kind = Message::kAbort;
  message.number = static_cast<uint64_t>(culprit_ + 1);
  std::strncpy(message.text, text.c_str(), sizeof(message.text) - 1);
  send_to_all(message);
}

void Control::leave(const std::vector<uint64_t>& sent) {
  // Whoever hears from this rank before it hears from the one that failed must know why this one leaves.
  if (failure_) abort(*failure_, culprit_);
  Message message;
  message.kind = Message::kLeave;
  for (int r = 0; r < group_.size(); ++r) {
    message.number = sent[static_cast<std::size_t>(r)];
    if (r != rank_) send(message, r);
  }
}

void Control::send_to_all(const Message& message) {
  for (int r = 0; r < group_.size(); ++r)
    if (r != rank_) send(message, r);
}

void Control::send(const Message& message, int to) {
  leaving_.remove_if([](Sending& sending) {
    int is_done = 0;
    MPI_Test(&sending.request, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  });
  Sending& sending = leaving_.emplace_back();
  sending.message = message;
  sending.message.from = rank_;
  const bool has_text = message.kind == Message::kAbort || message.kind == Message::kAnswer;
  const std::size_t bytes = has_text ? sizeof(Message) : offsetof(Message, text);
  check(MPI_Isend(&sending.message, static_cast<int>(bytes), MPI_BYTE, group_.process(to), group_.second(to),
                  group_.control, &sending.request),
        "MPI_Isend");
}

void Control::post_receive() {
  check(MPI_Irecv(&arriving_, sizeof(arriving_), MPI_BYTE, MPI_ANY_SOURCE, group_.second(rank_), group_.control,
                  &receive_),
        "MPI_Irecv");
}

bool Control::advance() {
  bool moved = false;
  while (true) {
    int has_come = 0;
    check(MPI_Test(&receive_, &has_come, MPI_STATUS_IGNORE), "MPI_Test");
    if (has_come == 0) return moved;
    moved |= take(arriving_);
    arriving_ = {};
    post_receive();
  }
}

void Control::ask(const std::set<int>& ranks) {
  asked_.clear();
  answered_.clear();
  idle_.clear();
  for (const int rank : ranks) ask(rank);
}

void Control::ask(int rank) {
  if (rank < 0 || rank >= group_.size() || rank == rank_ || !asked_.insert(rank).second) return;
  Message message;
  message.kind = Message::kAsk;
  send(message, rank);
}

std::set<int> Control::unanswered() const {
  std::set<int> ranks;
  std::set_difference(asked_.begin(), asked_.end(), answered_.begin(), answered_.end(),
                      std::inserter(ranks, ranks.end()));
  return ranks;
}

bool Control::take(const Message& message) {
  const auto from = static_cast<std::size_t>(message.from);
  switch (message.kind) {
    case Message::kCall:
      told_[from].push_back({message.number, message.call});
      compare_calls(message.from);
      break;
    case Message::kAbort:
      if (failure_) break;
      failure_ = std::string(message.text);
      culprit_ = static_cast<int>(message.number) - 1;
      if (culprit_ >= 0) note_culprit(culprit_);
      break;
    case Message::kLeave:
      departures_[from] = message.number;
      break;
    case Message::kAsk: {
      Message answer;
      answer.kind = Message::kAnswer;
      answer.write_ranks(awaited_());
      send(answer, message.from);
      return false;
    }
    case Message::kAnswer:
      answered_.insert(message.from);
      if (message.read_ranks().empty()) idle_.insert(message.from);
      for (const int rank : message.read_ranks()) ask(rank);
      return false;
  }
  return true;
}

void Control::compare_calls(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  uint64_t& agreed = agreed_[r];
  const auto is_called_here = [&](uint64_t number) { return number - forgotten_ < own_calls_.size(); };
  for (; !told_[r].empty(); told_[r].pop_front()) {
    const auto& [number, call] = told_[r].front();
    if (number < agreed) continue;  // complete meanwhile
    if (!is_called_here(number)) break;
    const Call& own = own_calls_[number - forgotten_].call;
    if (!call.matches(own)) {
      abort(fmt::format("rank {} calls {} where rank 0 calls {}. All ranks must make the same calls in the same order.",
                        rank, call.describe(), own.describe()),
            -1);
      return;
    }
    agreed = number + 1;  // and with it those before, which it has told, or knows to be complete
  }
  while (is_called_here(agreed) && own_calls_[agreed - forgotten_].is_complete) ++agreed;
  forget_agreed();
}

std::set<int> Control::behind(uint64_t number) const {
  std::set<int> ranks;
  for (int r = 1; rank_ == 0 && r < group_.size(); ++r)
    if (agreed_[static_cast<std::size_t>(r)] <= number) ranks.insert(r);
  return ranks;
}

void Control::forget_agreed() {
  for (const uint64_t all = *std::min_element(agreed_.begin() + 1, agreed_.end()); forgotten_ < all; ++forgotten_)
    own_calls_.pop_front();
}

}  // namespace tutti::mpi
