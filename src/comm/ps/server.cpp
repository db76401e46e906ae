#include "comm/ps/protocol.h"
#include "comm/ps/push_pull.h"
#include "comm/sum/sum.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// What a server keeps of one message: each worker's part, and the sum.
class Entry {
 public:
  Entry(int64_t number, std::size_t count, DataType type, int workers)
      : number_(number), count_(count), type_(type), parts_(static_cast<std::size_t>(workers)), sum_(bytes()) {
    for (auto& part : parts_) part.resize(bytes());
  }

  void expect(Communicator& group) {
    arriving_.clear();
    for (std::size_t worker = 0; worker < parts_.size(); ++worker)
      arriving_.push_back(
          group.receive({parts_[worker].data(), count_, type_}, static_cast<int>(worker), ps::tag_of(number_)));
  }

  /// Waits for all parts, adds them in rank order, however they came, and sends the sum on its way.
  void answer(Communicator& group) {
    std::vector<const void*> sources;
    for (std::size_t worker = 0; worker < parts_.size(); ++worker) {
      arriving_[worker]->wait();
      sources.push_back(parts_[worker].data());
    }
    sum_arrays(type_, {sum_.data()}, sources, count_);
    leaving_.clear();
    for (std::size_t worker = 0; worker < parts_.size(); ++worker)
      leaving_.push_back(group.send({sum_.data(), count_, type_}, static_cast<int>(worker), ps::tag_of(number_)));
  }

  void finish() {
    for (const auto& work : leaving_) work->wait();
  }

 private:
  std::size_t bytes() const { return count_ * bytes_of(type_); }

  int64_t number_;
  std::size_t count_;
  DataType type_;
  std::vector<std::vector<std::byte>> parts_;
  std::vector<std::byte> sum_;
  std::vector<std::unique_ptr<Work>> arriving_, leaving_;
};

}  // namespace

void serve(Communicator& group, const ServerGroup& shape) {
  std::vector<Entry> entries;
  while (true) {
    ps::Order order{};
    group.receive(ps::span_of(order), 0, ps::kOrderTag)->wait();
    switch (static_cast<ps::Command>(order[0])) {
      case ps::Command::announce: {
        std::vector<int64_t> list(static_cast<std::size_t>(order[2]) * 2);
        group.receive({list.data(), list.size(), DataType::i64}, 0, ps::kListTag)->wait();
        entries.clear();
        for (std::size_t i = 0; i < list.size(); i += 2)
          entries.emplace_back(list[i], static_cast<std::size_t>(list[i + 1]), static_cast<DataType>(order[1]),
                               shape.workers);
        break;
      }
      case ps::Command::step:
        // All are expected at once, so that nothing that has come waits for what has not.
        for (Entry& entry : entries) entry.expect(group);
        for (Entry& entry : entries) entry.answer(group);
        for (Entry& entry : entries) entry.finish();
        break;
      case ps::Command::stop:
        group.barrier()->wait();
        return;
      default:
        throw Error("a parameter server was told {}, which it does not know", order[0]);
    }
  }
}

}  // namespace tutti
