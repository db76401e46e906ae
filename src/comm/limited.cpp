#include "comm/limited.h"

#include <thread>
#include <utility>

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// Completes when the inner operation has, and the pretended link has carried it.
class LimitedWork : public Work {
 public:
  LimitedWork(std::unique_ptr<Work> inner, std::chrono::nanoseconds cost) : inner_(std::move(inner)), cost_(cost) {}
  void wait() override {
    if (is_done_) return;
    inner_->wait();
    // The link carries nothing before all ranks have come. When they have, the inner operation is nearly through.
    std::this_thread::sleep_until(Clock::now() + cost_);
    is_done_ = true;
  }

 private:
  std::unique_ptr<Work> inner_;
  std::chrono::nanoseconds cost_;
  bool is_done_ = false;
};

class LimitedCommunicator : public Communicator {
 public:
  LimitedCommunicator(std::unique_ptr<Communicator> inner, const LinkLimit& limit)
      : inner_(std::move(inner)), limit_(limit) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }

  std::unique_ptr<Work> all_reduce_sum(Span inout) override {
    return limited(inner_->all_reduce_sum(inout), 2 * ring_share() * bytes(inout));
  }
  std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) override {
    return limited(inner_->reduce_scatter_sum(inout, std::move(counts)), ring_share() * bytes(inout), 2);
  }
  std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) override {
    return limited(inner_->all_gather(inout, std::move(counts)), ring_share() * bytes(inout), 2);
  }
  std::unique_ptr<Work> broadcast(Span inout, int root) override {
    return limited(inner_->broadcast(inout, root), bytes(inout));
  }
  std::unique_ptr<Work> barrier() override { return inner_->barrier(); }
  std::unique_ptr<Work> send(Span data, int to, int tag) override { return inner_->send(data, to, tag); }
  std::unique_ptr<Work> receive(Span data, int from, int tag) override { return inner_->receive(data, from, tag); }
  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void* device_stream() const override { return inner_->device_stream(); }
  Awaited awaited() override { return inner_->awaited(); }
  std::vector<int> node_ranks() const override { return inner_->node_ranks(); }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 private:
  static double bytes(const Span& span) { return static_cast<double>(span.bytes()); }
  double ring_share() const { return static_cast<double>(size() - 1) / size(); }
  std::unique_ptr<Work> limited(std::unique_ptr<Work> work, double bytes_on_link, int startup_parts = 1) const {
    const double transmission_s = limit_.bytes_per_s > 0 ? bytes_on_link / limit_.bytes_per_s : 0;
    return std::make_unique<LimitedWork>(
        std::move(work),
        limit_.startup / startup_parts + std::chrono::nanoseconds(static_cast<int64_t>(transmission_s * 1e9)));
  }

  std::unique_ptr<Communicator> inner_;
  LinkLimit limit_;
};

}  // namespace

std::unique_ptr<Communicator> limit_links(std::unique_ptr<Communicator> comm, const LinkLimit& limit) {
  return std::make_unique<LimitedCommunicator>(std::move(comm), limit);
}

}  // namespace tutti
