#include "comm/ps/push_pull.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "comm/ps/protocol.h"

namespace tutti {
namespace {

class PushPullWork : public Work {
 public:
  /// `push` and `pull` are null on a rank that does not talk to the servers, `node` where there is none.
  PushPullWork(std::unique_ptr<Work> push, std::unique_ptr<Work> pull, Communicator* node, Span data,
               std::chrono::nanoseconds pretended_cost)
      : push_(std::move(push)), pull_(std::move(pull)), node_(node), data_(data), pretended_cost_(pretended_cost) {}

  void wait() override {
    if (is_done_) return;
    if (pull_) {
      push_->wait();
      pull_->wait();
    }
    if (pretended_cost_.count() > 0) std::this_thread::sleep_until(Clock::now() + pretended_cost_);
    if (node_ != nullptr) node_->broadcast(data_, 0)->wait();
    is_done_ = true;
  }

 private:
  std::unique_ptr<Work> push_, pull_;
  Communicator* node_;
  Span data_;
  std::chrono::nanoseconds pretended_cost_;
  bool is_done_ = false;
};

}  // namespace

PushPull::PushPull(const ServerGroup& shape, Communicator* group, Communicator* node)
    : shape_(shape), group_(group), node_(node) {
  if (group != nullptr && group->size() != shape.size())
    throw Error("{} workers and {} servers do not make a group of {}", shape.workers, shape.servers, group->size());
}

void PushPull::announce(DataType type, const std::vector<PushPullMessage>& messages) {
  messages_ = messages;
  if (!leads()) return;
  for (int server = 0; server < shape_.servers; ++server) {
    std::vector<int64_t> list;  // number, length, number, length, …
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].server != server) continue;
      list.push_back(static_cast<int64_t>(i));
      list.push_back(static_cast<int64_t>(messages[i].count));
    }
    ps::Order order = {static_cast<int64_t>(ps::Command::announce), static_cast<int64_t>(type),
                       static_cast<int64_t>(list.size() / 2)};
    const int to = shape_.rank_of_server(server);
    const auto told = group_->send(ps::span_of(order), to, ps::kOrderTag);
    const auto listed = group_->send({list.data(), list.size(), DataType::i64}, to, ps::kListTag);
    told->wait();
    listed->wait();
  }
}

std::unique_ptr<Work> PushPull::start(std::size_t message, Span inout) {
  if (message >= messages_.size() || messages_[message].count != inout.count)
    throw Error("message {} with {} elements was not announced to the parameter servers", message, inout.count);
  if (node_ != nullptr) node_->all_reduce_sum(inout)->wait();
  if (!talks()) return std::make_unique<PushPullWork>(nullptr, nullptr, node_, inout, std::chrono::nanoseconds(0));
  const int server = shape_.rank_of_server(messages_[message].server);
  const int tag = ps::tag_of(static_cast<int64_t>(message));
  // The sum cannot come before the server has all of what it is made of, so it may come to the same place.
  auto push = group_->send(inout, server, tag);
  auto pull = group_->receive(inout, server, tag);
  return std::make_unique<PushPullWork>(std::move(push), std::move(pull), node_, inout, pretended_cost(inout.bytes()));
}

void PushPull::tell_servers(int64_t command) {
  if (!leads()) return;
  ps::Order order = {command, 0, 0};
  for (int server = 0; server < shape_.servers; ++server)
    group_->send(ps::span_of(order), shape_.rank_of_server(server), ps::kOrderTag)->wait();
}

void PushPull::begin_step() { tell_servers(static_cast<int64_t>(ps::Command::step)); }

void PushPull::stop() {
  tell_servers(static_cast<int64_t>(ps::Command::stop));
  if (talks()) group_->barrier()->wait();  // nobody leaves while others still need them
}

void PushPull::abort(const std::string& reason) noexcept {
  if (talks()) group_->abort(reason);
  if (node_ != nullptr) node_->abort(reason);
}

std::chrono::nanoseconds PushPull::pretended_cost(std::size_t bytes) const {
  if (limit_.bytes_per_s <= 0) return limit_.startup;
  const double workers = shape_.workers, servers = shape_.servers;
  // A machine with both roles sends its gradients but for its own server's share, and its server's sums to the others.
  const double carried = shape_.colocated ? 2 * (workers - 1) / workers : std::max(1.0, workers / servers);
  return limit_.startup + std::chrono::nanoseconds(
                              static_cast<int64_t>(static_cast<double>(bytes) * carried / limit_.bytes_per_s * 1e9));
}

}  // namespace tutti
