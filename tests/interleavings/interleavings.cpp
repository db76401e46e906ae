// interleavings [PLANTED]: ranks on shared memory, in every order of their operations that can make a difference. The
// sources are those of src/comm/shm, with small rings and no spinning before sleep. With an argument, the mistake of
// that name is made, and has to be found.
//
// What is not tried: weaker memory orders than sequential consistency (the sources use relaxed ones for signs of
// life only), plain memory that is read while it is written (tsan looks for that), the thread of its own that makes
// progress for a rank, processes that are killed between two operations, time-outs.
#include <cstdio>
#include <cstring>

#include "comm/shm/progress.h"

namespace tutti::shm {
namespace {

using interleave::Verdict;
using interleave::World;

/// Ranks with a communicator's parts each, in one process.
class Ranks : public World {
 public:
  explicit Ranks(int size) {
    for (int r = 0; r < size; ++r) segments_.push_back(std::make_unique<Segment>(Fd(), r, size));
    ShmProgressOptions options;
    options.own_thread = false;
    for (const auto& segment : segments_) progress_.push_back(std::make_unique<ShmProgress>(*segment, options));
  }

  std::vector<std::function<void()>> bodies() override {
    std::vector<std::function<void()>> all;
    for (int r = 0; r < size(); ++r) {
      all.emplace_back([this, r] {
        try {
          body(r);
        } catch (const std::exception& error) {
          complain(error.what());
        }
      });
    }
    return all;
  }
  std::string complaint() override { return complaint_; }

 protected:
  virtual void body(int rank) = 0;

  int size() const { return static_cast<int>(segments_.size()); }
  Segment& segment(int rank) { return *segments_[static_cast<std::size_t>(rank)]; }
  ShmProgress& progress(int rank) { return *progress_[static_cast<std::size_t>(rank)]; }
  void complain(const std::string& text) {
    if (complaint_.empty()) complaint_ = text;
  }

  void collective(int rank, CallKind kind, float* data, std::size_t count) {
    auto operation = std::make_shared<Collective>();
    operation->call = {kind, DataType::f32, 0, count};
    operation->slices.data = reinterpret_cast<std::byte*>(data);
    operation->slices.begin.assign(static_cast<std::size_t>(size()) + 1, count);
    operation->slices.begin[0] = 0;
    progress(rank).post(operation);
    progress(rank).wait(*operation);
  }
  void barrier(int rank) { collective(rank, CallKind::barrier, nullptr, 0); }
  std::shared_ptr<PointToPoint> transfer(std::byte* data, std::size_t bytes, int peer, int tag) {
    auto operation = std::make_shared<PointToPoint>();
    operation->data = data;
    operation->bytes = bytes;
    operation->peer = peer;
    operation->tag = tag;
    return operation;
  }

 private:
  std::string complaint_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<ShmProgress>> progress_;
};

/// The same number of barriers on every rank.
template <int kRanks, int kTimes>
class Barriers : public Ranks {
 public:
  Barriers() : Ranks(kRanks) {}
  void body(int rank) override {
    for (int i = 0; i < kTimes; ++i) barrier(rank);
  }
};

/// Sums through the stages, which are used in turns.
template <int kRanks, int kTimes>
class Sums : public Ranks {
 public:
  Sums() : Ranks(kRanks) {}
  void body(int rank) override {
    for (int i = 0; i < kTimes; ++i) {
      float value = static_cast<float>(10 * i + rank + 1);
      collective(rank, CallKind::all_reduce, &value, 1);
      const float expected = static_cast<float>(kRanks * 10 * i + kRanks * (kRanks + 1) / 2);
      if (value != expected) complain("a sum is " + std::to_string(value) + ", not " + std::to_string(expected));
    }
  }
};

/// Messages that together do not fit into a ring; its ring is 64 bytes, of which a header takes 16.
class Messages : public Ranks {
 public:
  Messages() : Ranks(2) {}
  void body(int rank) override {
    std::byte data[kMessages][kBytes];
    for (int m = 0; m < kMessages; ++m) {
      std::memset(data[m], rank == 0 ? m + 1 : 0, kBytes);
      const auto operation = transfer(data[m], kBytes, 1 - rank, m);
      rank == 0 ? progress(rank).post_send(operation) : progress(rank).post_receive(operation);
      progress(rank).wait(*operation);
      for (const std::byte byte : data[m])
        if (byte != std::byte(m + 1)) complain("a message has other bytes than were sent");
    }
  }

 private:
  static constexpr int kMessages = 2;
  static constexpr std::size_t kBytes = 24;
};

/// Both ranks send first and receive then.
class Exchange : public Ranks {
 public:
  Exchange() : Ranks(2) {}
  void body(int rank) override {
    std::byte mine[8], theirs[8];
    std::memset(mine, rank + 1, sizeof mine);
    const auto send = transfer(mine, sizeof mine, 1 - rank, 0);
    const auto receive = transfer(theirs, sizeof theirs, 1 - rank, 0);
    progress(rank).post_send(send);
    progress(rank).post_receive(receive);
    progress(rank).wait(*send);
    progress(rank).wait(*receive);
    if (theirs[0] != std::byte(2 - rank)) complain("a message has other bytes than were sent");
  }
};

/// One rank fails while the other waits for it; both get the text.
class Failure : public Ranks {
 public:
  Failure() : Ranks(2) {}
  void body(int rank) override {
    try {
      if (rank == 1) segment(1).fail("planned");
      barrier(rank);
      complain("a barrier passed that one rank never reached");
    } catch (const CommFailed& failure) {
      if (std::string(failure.what()) != "planned") complain("the failure reads: " + std::string(failure.what()));
    }
  }
};

/// One rank leaves while the other waits for it, as a communicator that is closed does; a monitor rings.
class Departure : public Ranks {
 public:
  Departure() : Ranks(2) {}
  void body(int rank) override {
    if (rank == 1) {
      segment(1).own().has_left.store(1);
      segment(1).state(0).bell.ring_hard();
      return;
    }
    try {
      barrier(rank);
      complain("a barrier passed that one rank never reached");
    } catch (const CommFailed& failure) {
      if (std::strstr(failure.what(), "has left") == nullptr) complain(failure.what());
    }
  }
};

struct Scenario {
  const char* name;
  std::unique_ptr<World> (*make)();
};
template <typename T>
std::unique_ptr<World> make() {
  return std::make_unique<T>();
}
constexpr Scenario kScenarios[] = {
    {"two ranks, a barrier", make<Barriers<2, 1>>},   {"two ranks, two barriers", make<Barriers<2, 2>>},
    {"three ranks, a barrier", make<Barriers<3, 1>>}, {"two ranks, three sums", make<Sums<2, 3>>},
    {"messages both ways", make<Exchange>},           {"messages through a small ring", make<Messages>},
    {"a rank fails, the other waits", make<Failure>}, {"a rank leaves, the other waits", make<Departure>},
};

struct Mistake {
  const char* name;
  bool interleave::Planted::*is_made;
};
constexpr Mistake kMistakes[] = {
    {"sleep_without_second_look", &interleave::Planted::sleep_without_second_look},
    {"ring_before_arrival", &interleave::Planted::ring_before_arrival},
    {"wake_without_new_ticket", &interleave::Planted::wake_without_new_ticket},
    {"one_stage_instead_of_two", &interleave::Planted::one_stage_instead_of_two},
    {"ring_without_full_check", &interleave::Planted::ring_without_full_check},
    {"mail_before_bytes", &interleave::Planted::mail_before_bytes},
    {"mail_taken_after_work", &interleave::Planted::mail_taken_after_work},
};

int run(const char* planted) {
  bool is_known = planted == nullptr;
  for (const Mistake& mistake : kMistakes) {
    if (planted == nullptr || std::strcmp(mistake.name, planted) != 0) continue;
    interleave::planted.*mistake.is_made = true;
    is_known = true;
  }
  if (!is_known) {
    std::printf("unknown mistake %s\n", planted);
    return 2;
  }
  bool is_found = false;
  for (const Scenario& scenario : kScenarios) {
    const Verdict verdict = interleave::explore(scenario.make);
    std::printf("%s: %s after %ld orders of up to %zu operations\n", scenario.name,
                verdict.complaint.empty() ? "holds" : "broken", verdict.orders, verdict.longest);
    if (verdict.complaint.empty()) continue;
    is_found = true;
    std::printf("%s\n", verdict.complaint.c_str());
    if (planted != nullptr) break;
  }
  if (planted != nullptr) std::printf("planted: %s: %s\n", planted, is_found ? "found" : "NOT FOUND");
  return is_found == (planted != nullptr) ? 0 : 1;
}

}  // namespace
}  // namespace tutti::shm

int main(int argc, char** argv) { return tutti::shm::run(argc > 1 ? argv[1] : nullptr); }
