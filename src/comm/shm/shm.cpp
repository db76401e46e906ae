#include "comm/shm/shm.h"

#include "base/exit_note.h"
#include "comm/shm/monitor.h"
#include "comm/shm/progress.h"
#include "comm/shm/rendezvous.h"

namespace tutti {
namespace shm {
namespace {

// How long a wait polls when each rank has a processor: longer than most ranks are apart, shorter than anything
// another program would miss. Without a processor for each, polling only keeps the others from running.
constexpr std::chrono::microseconds kSpinWithOwnCpu{50};
constexpr std::chrono::microseconds kSpinOversubscribed{1};

class ShmWork : public Work {
 public:
  ShmWork(ShmProgress& engine, std::shared_ptr<Pending> operation)
      : engine_(engine), operation_(std::move(operation)) {}

  void wait() override {
    // The engine finishes everything before it goes, so a Work that outlives it never gets past the first line.
    if (operation_->is_finished()) return operation_->rethrow();
    engine_.wait(*operation_);
  }

 private:
  ShmProgress& engine_;
  std::shared_ptr<Pending> operation_;
};

class ShmCommunicator : public Communicator {
 public:
  ShmCommunicator(const ShmOptions& options, Meeting meeting)
      : lifeline_(std::move(meeting.own_lifeline)),
        segment_(std::move(meeting.file), options.rank, options.size, options.servers, options.ranks),
        engine_(segment_, {spin_of(options), options.progress_thread, options.limits}),
        monitor_(segment_, std::move(meeting.lifelines), sign_interval(options.limits)) {}

  ~ShmCommunicator() override { segment_.own().has_left.store(1); }

  int rank() const override { return segment_.rank(); }
  int size() const override { return segment_.size(); }
  const char* name() const override { return "shm"; }

  std::unique_ptr<Work> all_reduce_sum(Span inout) override {
    return start({CallKind::all_reduce, inout.type, 0, inout.count}, inout, even_split(inout.count, size()));
  }

  std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) override {
    check_counts("reduce_scatter", inout, counts, size());
    return start({CallKind::reduce_scatter, inout.type, 0, inout.count, hash_of(counts)}, inout, counts);
  }

  std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) override {
    check_counts("all_gather", inout, counts, size());
    return start({CallKind::all_gather, inout.type, 0, inout.count, hash_of(counts)}, inout, counts);
  }

  std::unique_ptr<Work> broadcast(Span inout, int root) override {
    check_rank("broadcast", root, size());
    std::vector<std::size_t> counts(static_cast<std::size_t>(size()), 0);
    counts[static_cast<std::size_t>(root)] = inout.count;
    return start({CallKind::broadcast, inout.type, static_cast<int16_t>(root), inout.count}, inout, counts);
  }

  std::unique_ptr<Work> barrier() override {
    return start({CallKind::barrier}, {}, std::vector<std::size_t>(static_cast<std::size_t>(size()), 0));
  }

  std::unique_ptr<Work> send(Span data, int to, int tag) override {
    auto transfer = make_transfer("send", data, to, tag);
    engine_.post_send(transfer);
    return std::make_unique<ShmWork>(engine_, std::move(transfer));
  }

  std::unique_ptr<Work> receive(Span data, int from, int tag) override {
    auto transfer = make_transfer("receive", data, from, tag);
    engine_.post_receive(transfer);
    return std::make_unique<ShmWork>(engine_, std::move(transfer));
  }

  void* allocate(std::size_t bytes) override {
    auto collective = std::make_shared<Collective>();
    collective->call = {CallKind::allocate, DataType::f32, 0, bytes};
    collective->slices.begin.assign(static_cast<std::size_t>(size()) + 1, 0);
    engine_.post(collective);
    engine_.wait(*collective);
    return collective->allocated;
  }

  void abort(const std::string& reason) noexcept override {
    const int own = segment_.job_rank(rank());
    const std::string who = own == rank() ? fmt::format("rank {} of {}", own, size()) : fmt::format("rank {}", own);
    // Where this rank stops because of another, of whichever group, that one is to blame.
    segment_.fail(fmt::format("{} stopped: {}", who, reason), noted_culprit().value_or(own));
  }

  Awaited awaited() override {
    Awaited all = engine_.awaited();
    for (int& rank : all.ranks) rank = segment_.job_rank(rank);
    return all;
  }

 private:
  std::chrono::microseconds spin_of(const ShmOptions& options) {
    if (options.spin.count() >= 0) return options.spin;
    return segment_.has_cpu_per_rank() ? kSpinWithOwnCpu : kSpinOversubscribed;
  }

  std::unique_ptr<Work> start(const Call& call, Span data, const std::vector<std::size_t>& counts) {
    auto collective = std::make_shared<Collective>();
    collective->call = call;
    collective->slices.data = static_cast<std::byte*>(data.data);
    collective->slices.type = data.type;
    collective->slices.begin.assign(1, 0);
    for (const std::size_t count : counts) {
      collective->slices.begin.push_back(collective->slices.begin.back() + count);
    }
    if (size() == 1 && !segment_.has_failed()) {
      collective->succeed();
    } else {
      engine_.post(collective);
    }
    return std::make_unique<ShmWork>(engine_, std::move(collective));
  }

  std::shared_ptr<PointToPoint> make_transfer(const char* what, Span data, int peer, int tag) const {
    check_rank(what, peer, size());
    auto transfer = std::make_shared<PointToPoint>();
    transfer->data = static_cast<std::byte*>(data.data);
    transfer->bytes = data.bytes();
    transfer->peer = peer;
    transfer->tag = tag;
    return transfer;
  }

  // In order of dependence. The lifeline goes last, after has_left is set: without that, its end means death.
  Fd lifeline_;
  Segment segment_;
  ShmProgress engine_;
  Monitor monitor_;
};

}  // namespace
}  // namespace shm

std::unique_ptr<Communicator> make_shm_communicator(const ShmOptions& options) {
  if (options.size < 1 || options.size > shm::kMaxRanks) {
    throw UsageError("shared memory connects 1 to {} ranks, not {}.", shm::kMaxRanks, options.size);
  }
  if (options.rank < 0 || options.rank >= options.size) {
    throw UsageError("rank {} is not among {} ranks.", options.rank, options.size);
  }
  return std::make_unique<shm::ShmCommunicator>(options, shm::meet(options));
}

}  // namespace tutti
