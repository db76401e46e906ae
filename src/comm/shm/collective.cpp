#include "comm/shm/collective.h"

namespace tutti::shm {
namespace {

/// What fits here goes out with the announcement and is added up by everybody, in one round instead of two. The more a
/// round costs, the longer that pays off: without a processor for each rank, it costs changes from rank to rank.
std::size_t small_bytes(bool has_cpu_per_rank) { return has_cpu_per_rank ? 4 * 1024 : 16 * 1024; }

class Allocation : public Schedule {
 public:
  Allocation(Arena& arena, std::size_t bytes, void*& result) : arena_(arena), bytes_(bytes), result_(result) {}

  std::size_t rounds() const override { return 1; }
  void before(std::size_t) override { result_ = arena_.allocate(bytes_); }
  void after(std::size_t) override {}

 private:
  Arena& arena_;
  std::size_t bytes_;
  void*& result_;
};

}  // namespace

bool CollectiveQueue::advance(bool may_begin) {
  bool moved = false;
  try {
    while (!queue_.empty()) {
      Collective& collective = *queue_.front();
      if (!collective.has_arrived) {
        if (!may_begin) return moved;
        begin_round(collective);
        moved = true;
      }
      if (!rounds_.all_have_arrived()) return moved;
      moved = true;
      end_round(collective);
      if (collective.round < (collective.schedule ? collective.schedule->rounds() : 0)) continue;
      collective.succeed();
      queue_.pop_front();
    }
  } catch (const Error& error) {
    segment_.fail(error.what());
    fail_all(segment_.failure_text());
    moved = true;
  }
  return moved;
}

void CollectiveQueue::begin_round(Collective& collective) {
  rounds_.begin();
  if (collective.is_announced) {
    collective.schedule->before(collective.round);
  } else {
    Call call = collective.call;
    const std::size_t bytes = collective.slices.bytes(collective.slices.count());
    if (bytes > 0) {
      collective.schedule = staged_schedule(collective);
      collective.is_small = bytes <= small_bytes(has_cpu_per_rank_) && collective.schedule->rounds() == 1;
      if (const auto offset = arena_.offset_of(collective.slices.data, bytes)) call.offset = *offset;
    }
    if (collective.is_small) collective.schedule->before(0);
    rounds_.announce(call);
  }
  collective.has_arrived = true;
  rounds_.arrive();
}

void CollectiveQueue::end_round(Collective& collective) {
  collective.has_arrived = false;
  if (collective.is_announced) {
    collective.schedule->after(collective.round++);
    return;
  }
  check_calls();
  collective.is_announced = true;
  if (collective.is_small) {
    collective.schedule->after(collective.round++);
  } else {
    collective.schedule = large_schedule(collective);
  }
}

void CollectiveQueue::check_calls() {
  for (int r = 1; r < segment_.size(); ++r) {
    if (rounds_.call(r).matches(rounds_.call(0))) continue;
    throw CommFailed("rank {} calls {} where rank 0 calls {}. All ranks must make the same calls in the same order.", r,
                     rounds_.call(r).describe(), rounds_.call(0).describe());
  }
}

std::unique_ptr<Schedule> CollectiveQueue::staged_schedule(Collective& collective) {
  switch (collective.call.kind) {
    case CallKind::all_reduce:
      return staged_all_reduce(rounds_, collective.slices);
    case CallKind::reduce_scatter:
      return staged_reduce_scatter(rounds_, collective.slices);
    case CallKind::all_gather:
    case CallKind::broadcast:
      return staged_all_gather(rounds_, collective.slices);
    default:
      return nullptr;
  }
}

std::unique_ptr<Schedule> CollectiveQueue::large_schedule(Collective& collective) {
  if (collective.call.kind == CallKind::allocate) {
    return std::make_unique<Allocation>(arena_, collective.call.count, collective.allocated);
  }
  std::vector<std::byte*> buffers;
  for (int r = 0; r < segment_.size() && collective.schedule; ++r) {
    const uint64_t offset = rounds_.call(r).offset;
    // One rank without shared memory is enough to make all of them take the long way.
    if (offset == Call::kNotShared) return std::move(collective.schedule);
    buffers.push_back(arena_.at(offset));
  }
  switch (collective.schedule ? collective.call.kind : CallKind::none) {
    case CallKind::all_reduce:
      return direct_all_reduce(rounds_, collective.slices, std::move(buffers));
    case CallKind::reduce_scatter:
      return direct_reduce_scatter(rounds_, collective.slices, std::move(buffers));
    case CallKind::all_gather:
    case CallKind::broadcast:
      return direct_all_gather(rounds_, collective.slices, std::move(buffers));
    default:
      return nullptr;
  }
}

bool CollectiveQueue::notice_departures() {
  if (queue_.empty() || !queue_.front()->has_arrived) return false;
  for (int r = 0; r < segment_.size(); ++r) {
    // In this order: a rank arrives first and leaves afterwards.
    if (segment_.state(r).has_left.load() == 0 || rounds_.has_arrived(r)) continue;
    segment_.fail(fmt::format("{} has left while rank {} waits for it in {}.", segment_.describe(r), segment_.rank(),
                              queue_.front()->call.describe()),
                  segment_.job_rank(r));
    return true;
  }
  return false;
}

uint64_t CollectiveQueue::awaited() {
  if (queue_.empty() || !queue_.front()->has_arrived) return 0;
  uint64_t ranks = 0;
  for (int r = 0; r < segment_.size(); ++r)
    if (!rounds_.has_arrived(r)) ranks |= uint64_t{1} << r;
  return ranks;
}

bool CollectiveQueue::fail_all(const std::string& text) {
  if (queue_.empty()) return false;
  for (const auto& collective : queue_) collective->fail(text);
  queue_.clear();
  return true;
}

}  // namespace tutti::shm
