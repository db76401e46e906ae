#include "comm/hierarchical.h"

#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "comm/call.h"

namespace tutti {
namespace {

/// Starts a part of a collective; null where this rank has none.
using Phase = std::function<std::unique_ptr<Work>()>;

/// Parts that follow each other. The first is under way at once, the others as the caller waits.
class PhasedWork : public Work {
 public:
  PhasedWork(std::vector<Phase> phases, std::function<void(const std::string&)> give_up)
      : phases_(std::move(phases)), give_up_(std::move(give_up)), current_(phases_[0]()) {}

  void wait() override {
    while (next_ <= phases_.size()) {
      try {
        if (current_) current_->wait();
        if (next_ < phases_.size()) current_ = phases_[next_]();
      } catch (const std::exception& error) {
        give_up_(error.what());  // or the other levels would wait for this one
        throw;
      }
      ++next_;
    }
  }

 private:
  std::vector<Phase> phases_;
  std::function<void(const std::string&)> give_up_;
  std::unique_ptr<Work> current_;
  std::size_t next_ = 1;
};

class HierarchicalCommunicator : public Communicator {
 public:
  explicit HierarchicalCommunicator(NodeGroups groups) : groups_(std::move(groups)) {
    int first = 0;
    for (const int ranks : groups_.node_ranks) {
      if (rank() >= first && rank() < first + ranks) node_ = first_rank_.size();
      first_rank_.push_back(first);
      first += ranks;
    }
  }

  int rank() const override { return groups_.all->rank(); }
  int size() const override { return groups_.all->size(); }
  const char* name() const override { return "mpi by node"; }
  std::vector<int> node_ranks() const override { return groups_.node_ranks; }

  std::unique_ptr<Work> all_reduce_sum(Span inout) override {
    return phases({[this, inout] { return groups_.inside->all_reduce_sum(inout); },
                   [this, inout] { return groups_.leaders ? groups_.leaders->all_reduce_sum(inout) : nullptr; },
                   [this, inout] { return groups_.inside->broadcast(inout, 0); }});
  }

  std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) override {
    check_counts("reduce_scatter", inout, counts, size());
    const std::vector<std::size_t> of_nodes = sums_by_node(counts);
    return phases({[this, inout] { return groups_.inside->all_reduce_sum(inout); },
                   [this, inout, of_nodes] {
                     return groups_.leaders ? groups_.leaders->reduce_scatter_sum(inout, of_nodes) : nullptr;
                   },
                   [this, inout, of_nodes] { return groups_.inside->broadcast(share_of_node(inout, of_nodes), 0); }});
  }

  std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) override {
    check_counts("all_gather", inout, counts, size());
    const std::vector<std::size_t> of_nodes = sums_by_node(counts);
    const auto first = counts.begin() + first_rank_[node_];
    const std::vector<std::size_t> inside(first, first + groups_.node_ranks[node_]);
    return phases(
        {[this, inout, of_nodes, inside] { return groups_.inside->all_gather(share_of_node(inout, of_nodes), inside); },
         [this, inout, of_nodes] { return groups_.leaders ? groups_.leaders->all_gather(inout, of_nodes) : nullptr; },
         [this, inout] { return groups_.inside->broadcast(inout, 0); }});
  }

  std::unique_ptr<Work> broadcast(Span inout, int root) override {
    check_rank("broadcast", root, size());
    std::size_t node = 0;
    while (node + 1 < first_rank_.size() && first_rank_[node + 1] <= root) ++node;
    const int place = root - first_rank_[node];
    return phases(
        {[this, node, inout, place] { return node == node_ ? groups_.inside->broadcast(inout, place) : nullptr; },
         [this, node, inout] {
           return groups_.leaders ? groups_.leaders->broadcast(inout, static_cast<int>(node)) : nullptr;
         },
         [this, inout] { return groups_.inside->broadcast(inout, 0); }});
  }

  std::unique_ptr<Work> barrier() override {
    return phases({[this] { return groups_.inside->barrier(); },
                   [this] { return groups_.leaders ? groups_.leaders->barrier() : nullptr; },
                   [this] { return groups_.inside->barrier(); }});
  }

  std::unique_ptr<Work> send(Span data, int to, int tag) override { return groups_.all->send(data, to, tag); }
  std::unique_ptr<Work> receive(Span data, int from, int tag) override { return groups_.all->receive(data, from, tag); }

  void* allocate(std::size_t bytes) override { return groups_.inside->allocate(bytes); }

  Awaited awaited() override {
    for (Communicator* const level : {groups_.leaders.get(), groups_.inside.get(), groups_.all.get()}) {
      if (level == nullptr) continue;
      Awaited found = level->awaited();
      if (!found.call.empty()) return found;
    }
    return {};
  }

  void abort(const std::string& reason) noexcept override {
    groups_.inside->abort(reason);
    if (groups_.leaders) groups_.leaders->abort(reason);
    groups_.all->abort(reason);
  }

 private:
  std::unique_ptr<Work> phases(std::vector<Phase> parts) {
    return std::make_unique<PhasedWork>(std::move(parts), [this](const std::string& reason) { abort(reason); });
  }

  std::vector<std::size_t> sums_by_node(const std::vector<std::size_t>& counts) const {
    std::vector<std::size_t> sums;
    auto at = counts.begin();
    for (const int ranks : groups_.node_ranks) {
      sums.push_back(std::accumulate(at, at + ranks, std::size_t{0}));
      at += ranks;
    }
    return sums;
  }

  Span share_of_node(Span span, const std::vector<std::size_t>& of_nodes) const {
    const std::size_t begin =
        std::accumulate(of_nodes.begin(), of_nodes.begin() + static_cast<std::ptrdiff_t>(node_), std::size_t{0});
    return {static_cast<std::byte*>(span.data) + begin * bytes_of(span.type), of_nodes[node_], span.type};
  }

  NodeGroups groups_;
  std::vector<int> first_rank_;  // of each node
  std::size_t node_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_hierarchical_communicator(NodeGroups groups) {
  return std::make_unique<HierarchicalCommunicator>(std::move(groups));
}

}  // namespace tutti
