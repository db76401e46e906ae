#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/call.h"
#include "comm/nccl/session.h"

namespace tutti {
namespace {

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return ncclFloat32;
    case DataType::f16:
      return ncclFloat16;
    case DataType::bf16:
      return ncclBfloat16;
    case DataType::i64:
      return ncclInt64;
  }
  throw Error("NCCL has no such type");
}

/// Memory of the device that is freed at the end.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) {
    check_cuda(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)), "allocating device memory");
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

bool is_on_device(const void* memory) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, memory) == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
}

/// An operation on the stream, and the copy of its host memory on the device if it has any.
class NcclWork : public Work {
 public:
  NcclWork(NcclSession& session, const char* what) : session_(session), what_(what) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
  }
  ~NcclWork() override {
    if (stage_) cudaEventSynchronize(event_);  // the stage must outlive the operation
    cudaEventDestroy(event_);
  }

  /// Where the operation works: the span itself, or its copy on the device.
  void* place(Span span) {
    if (span.bytes() == 0 || is_on_device(span.data)) return span.data;
    host_ = span;
    stage_ = std::make_unique<DeviceMemory>(span.bytes());
    check_cuda(cudaMemcpyAsync(stage_->data(), span.data, span.bytes(), cudaMemcpyHostToDevice, session_.stream()),
               "copying to the device");
    return stage_->data();
  }
  void queued_on(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording an event"); }

  void wait() override {
    if (is_done_) return;
    const OnDevice on_device(session_.device());
    session_.wait_for(event_, what_);
    if (stage_)
      check_cuda(cudaMemcpy(host_.data, stage_->data(), host_.bytes(), cudaMemcpyDeviceToHost), "copying to the host");
    is_done_ = true;
  }

 private:
  NcclSession& session_;
  const char* what_;
  cudaEvent_t event_ = nullptr;
  Span host_;
  std::unique_ptr<DeviceMemory> stage_;
  bool is_done_ = false;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(int rank, int size, std::unique_ptr<NcclSession> session)
      : rank_(rank), size_(size), session_owner_(std::move(session)), session_(*session_owner_) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "nccl"; }
  void* device_stream() const override { return session_.stream(); }

  Communicator* recordable() override {
    if (!recordable_) {
      auto made = std::make_unique<NcclCommunicator>(rank_, size_, NcclSession::for_graphs(session_));
      const std::lock_guard<std::mutex> lock(mutex_);
      recordable_ = std::move(made);
    }
    return recordable_.get();
  }

  std::unique_ptr<Work> queued_on(void* stream) override {
    const OnDevice on_device(session_.device());
    auto work = std::make_unique<NcclWork>(session_, "work queued on the GPU");
    work->queued_on(static_cast<cudaStream_t>(stream));
    return work;
  }

  std::unique_ptr<Work> all_reduce_sum(Span inout) override {
    return run("all_reduce", inout, [&](void* data, ncclComm_t comm) {
      return ncclAllReduce(data, data, inout.count, nccl_type(inout.type), ncclSum, comm, session_.stream());
    });
  }

  std::unique_ptr<Work> reduce_scatter_sum(Span inout, std::vector<std::size_t> counts) override {
    check_counts("reduce_scatter", inout, counts, size_);
    return run("reduce_scatter", inout, [&](void* data, ncclComm_t comm) {
      const ncclDataType_t type = nccl_type(inout.type);
      if (are_equal(counts))
        return ncclReduceScatter(data, slice(data, inout.type, counts, rank_), counts[0], type, ncclSum, comm,
                                 session_.stream());
      return for_each_slice(data, inout.type, counts, [&](void* mine, std::size_t count, int root) {
        return ncclReduce(mine, mine, count, type, ncclSum, root, comm, session_.stream());
      });
    });
  }

  std::unique_ptr<Work> all_gather(Span inout, std::vector<std::size_t> counts) override {
    check_counts("all_gather", inout, counts, size_);
    return run("all_gather", inout, [&](void* data, ncclComm_t comm) {
      const ncclDataType_t type = nccl_type(inout.type);
      if (are_equal(counts))
        return ncclAllGather(slice(data, inout.type, counts, rank_), data, counts[0], type, comm, session_.stream());
      return for_each_slice(data, inout.type, counts, [&](void* theirs, std::size_t count, int root) {
        return ncclBroadcast(theirs, theirs, count, type, root, comm, session_.stream());
      });
    });
  }

  std::unique_ptr<Work> broadcast(Span inout, int root) override {
    check_rank("broadcast", root, size_);
    return run("broadcast", inout, [&](void* data, ncclComm_t comm) {
      return ncclBroadcast(data, data, inout.count, nccl_type(inout.type), root, comm, session_.stream());
    });
  }

  std::unique_ptr<Work> barrier() override {
    return run("barrier", {&came_, 1, DataType::i64}, [&](void* data, ncclComm_t comm) {
      return ncclAllReduce(data, data, 1, ncclInt64, ncclMax, comm, session_.stream());
    });
  }

  std::unique_ptr<Work> send(Span data, int to, int) override {
    check_rank("send", to, size_);
    return run("send", data, [&](void* memory, ncclComm_t comm) {
      return ncclSend(memory, data.count, nccl_type(data.type), to, comm, session_.stream());
    });
  }

  std::unique_ptr<Work> receive(Span data, int from, int) override {
    check_rank("receive", from, size_);
    return run("receive", data, [&](void* memory, ncclComm_t comm) {
      return ncclRecv(memory, data.count, nccl_type(data.type), from, comm, session_.stream());
    });
  }

  void* allocate(std::size_t bytes) override {
    const OnDevice on_device(session_.device());
    memory_.push_back(std::make_unique<DeviceMemory>(bytes));
    check_cuda(cudaMemset(memory_.back()->data(), 0, bytes), "clearing device memory");
    check_cuda(cudaDeviceSynchronize(), "clearing device memory");
    return memory_.back()->data();
  }

  void abort(const std::string& reason) noexcept override {
    session_.abort(reason);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (recordable_) recordable_->abort(reason);
  }

 private:
  /// Queues `call(memory on the device, communicator)`.
  template <typename Call>
  std::unique_ptr<Work> run(const char* what, Span span, Call call) {
    const OnDevice on_device(session_.device());
    auto work = std::make_unique<NcclWork>(session_, what);
    ncclComm_t const comm = session_.comm(what);
    if (span.count > 0) session_.check(call(work->place(span), comm), what);
    work->queued_on(session_.stream());
    return work;
  }

  static bool are_equal(const std::vector<std::size_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [&](std::size_t count) { return count == counts[0]; });
  }
  static void* slice(void* data, DataType type, const std::vector<std::size_t>& counts, int rank) {
    auto* at = static_cast<std::byte*>(data);
    for (int r = 0; r < rank; ++r) at += counts[static_cast<std::size_t>(r)] * bytes_of(type);
    return at;
  }
  /// One NCCL operation per rank's slice, all of them together: NCCL's own scatter and gather know equal slices only.
  template <typename Operation>
  ncclResult_t for_each_slice(void* data, DataType type, const std::vector<std::size_t>& counts, Operation operation) {
    ncclGroupStart();
    ncclResult_t result = ncclSuccess;
    for (int r = 0; r < size_; ++r) {
      const std::size_t count = counts[static_cast<std::size_t>(r)];
      if (count == 0) continue;
      const ncclResult_t one = operation(slice(data, type, counts, r), count, r);
      if (one != ncclSuccess && one != ncclInProgress) result = one;
    }
    const ncclResult_t all = ncclGroupEnd();
    return result != ncclSuccess ? result : all;
  }

  const int rank_, size_;
  int64_t came_ = 0;
  const std::unique_ptr<NcclSession> session_owner_;
  NcclSession& session_;  // the same
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::mutex mutex_;
  std::unique_ptr<NcclCommunicator> recordable_;  // guarded by mutex_ against abort(); ends before memory is freed
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const NcclOptions& options) {
  return std::make_unique<NcclCommunicator>(options.rank, options.size, std::make_unique<NcclSession>(options));
}

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

}  // namespace tutti
