#include "comm/mpi/mpi.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "comm/mpi/progress.h"

namespace tutti {
namespace mpi {
namespace {

// Up to here every rank gathers what all others bring: more bytes, fewer messages.
constexpr std::size_t kSmallBytes = 4 * 1024;

class MpiWork : public Work {
 public:
  MpiWork(MpiProgress& progress, std::shared_ptr<Pending> operation, std::string what)
      : progress_(progress), operation_(std::move(operation)), what_(std::move(what)) {}

  void wait() override {
    // Everything is finished before the communicator goes, so a Work that outlives it never gets past this line.
    if (operation_->is_finished()) return operation_->rethrow();
    progress_.wait(*operation_, what_);
  }

 private:
  MpiProgress& progress_;
  std::shared_ptr<Pending> operation_;
  std::string what_;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const MpiOptions& options, std::shared_ptr<RankGroup> group)
      : rank_(options.rank),
        size_(group->size()),
        progress_(std::move(group), options.rank, {options.limits, options.progress_thread}) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "mpi"; }

  std::unique_ptr<Work> all_reduce_sum(Span inout) override {
    const Call call{CallKind::all_reduce, inout.type, 0, inout.count};
    if (inout.bytes() <= kSmallBytes) {
      return start(call,
                   [&](uint64_t number) { return make_small_all_reduce(progress_.traffic(), call, number, inout); });
    }
    return exchange(call, inout, even_split(inout.count, size_));
  }

  std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) override {
    check_counts("reduce_scatter", inout, counts, size_);
    return exchange({CallKind::reduce_scatter, inout.type, 0, inout.count, hash_of(counts)}, inout, counts);
  }

  std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) override {
    check_counts("all_gather", inout, counts, size_);
    return exchange({CallKind::all_gather, inout.type, 0, inout.count, hash_of(counts)}, inout, counts);
  }

  std::unique_ptr<Work> broadcast(Span inout, int root) override {
    check_rank("broadcast", root, size_);
    const Call call{CallKind::broadcast, inout.type, static_cast<int16_t>(root), inout.count};
    return start(call, [&](uint64_t number) { return make_broadcast(progress_.traffic(), call, number, inout); });
  }

  std::unique_ptr<Work> barrier() override {
    const Call call{CallKind::barrier};
    return start(call, [&](uint64_t number) { return make_small_all_reduce(progress_.traffic(), call, number, {}); });
  }

  std::unique_ptr<Work> send(Span data, int to, int tag) override {
    auto message = make_message("send", data, to, tag);
    progress_.send(message);
    return work(std::move(message), fmt::format("send with tag {} to rank {}", tag, to));
  }

  std::unique_ptr<Work> receive(Span data, int from, int tag) override {
    auto message = make_message("receive", data, from, tag);
    progress_.receive(message);
    return work(std::move(message), fmt::format("receive with tag {} from rank {}", tag, from));
  }

  void* allocate(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 64;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, rounded);  // NOLINT(cppcoreguidelines-no-malloc)
    if (memory == nullptr) throw Error("no memory for {} bytes", bytes);
    std::memset(memory, 0, rounded);
    memory_.emplace_back(memory);
    return memory;
  }

  void abort(const std::string& reason) noexcept override {
    progress_.abort(fmt::format("rank {} of {} stopped: {}", rank_, size_, reason));
  }

  Awaited awaited() override { return progress_.awaited(); }

 private:
  std::unique_ptr<Work> work(std::shared_ptr<Pending> operation, std::string what) {
    return std::make_unique<MpiWork>(progress_, std::move(operation), std::move(what));
  }

  std::unique_ptr<Work> start(const Call& call, const MpiProgress::MakeCollective& make) {
    return work(progress_.start(call, make), call.describe());
  }

  std::unique_ptr<Work> exchange(const Call& call, Span inout, const std::vector<std::size_t>& counts) {
    Slices slices{static_cast<std::byte*>(inout.data), inout.type, {0}};
    for (const std::size_t count : counts) slices.begin.push_back(slices.begin.back() + count);
    return start(call, [&](uint64_t number) { return make_exchange(progress_.traffic(), call, number, slices); });
  }

  std::shared_ptr<Message> make_message(const char* what, Span data, int peer, int tag) const {
    check_rank(what, peer, size_);
    auto message = std::make_shared<Message>();
    message->data = static_cast<std::byte*>(data.data);
    message->bytes = data.bytes();
    message->peer = peer;
    message->tag = tag;
    return message;
  }

  int rank_;
  int size_;
  std::vector<std::unique_ptr<void, Free>> memory_;  // outlives what is under way in it
  MpiProgress progress_;
};

}  // namespace
}  // namespace mpi

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options) {
  mpi::Session& session = mpi::Session::get(options.limits.silent);
  std::vector<int> processes = options.processes;
  if (processes.empty()) {
    processes.resize(static_cast<std::size_t>(session.size()));
    std::iota(processes.begin(), processes.end(), 0);
  }
  check_rank("mpi", options.rank, static_cast<int>(processes.size()));
  if (processes[static_cast<std::size_t>(options.rank)] != session.rank())
    throw Error("rank {} is process {} of this MPI job, not process {}", options.rank,
                processes[static_cast<std::size_t>(options.rank)], session.rank());
  return std::make_unique<mpi::MpiCommunicator>(options, session.join(options.job, processes));
}

MpiWorld start_mpi(std::chrono::milliseconds timeout) {
  const mpi::Session& session = mpi::Session::get(timeout);
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return {session.rank(), session.size(), version.substr(0, version.find_first_of(",\n"))};
}

bool built_with_mpi() { return true; }

}  // namespace tutti
