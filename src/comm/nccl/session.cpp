#include "comm/nccl/session.h"

#include <cstring>
#include <thread>
#include <utility>

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// Short transfers end while we look; longer ones leave the core to others.
void pause(Clock::time_point since) {
  if (Clock::now() - since > std::chrono::microseconds(100)) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

ncclUniqueId agree_on_id(const NcclOptions& options) {
  ncclUniqueId id{};
  if (options.rank == 0 && ncclGetUniqueId(&id) != ncclSuccess)
    throw Error("NCCL cannot make an id for the job: {}", ncclGetLastError(nullptr));
  const std::string text = options.share(std::string(id.internal, sizeof id.internal));
  if (text.size() != sizeof id.internal)
    throw Error("rank 0 sent {} bytes in place of NCCL's id of {}", text.size(), sizeof id.internal);
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

}  // namespace

OnDevice::OnDevice(int device) {
  check_cuda(cudaGetDevice(&before_), "asking for the device");
  check_cuda(cudaSetDevice(device), "choosing the device");
}

OnDevice::~OnDevice() { cudaSetDevice(before_); }

NcclSession::NcclSession(int rank, int size, int device, std::chrono::milliseconds timeout, bool for_graphs)
    : rank_(rank), size_(size), device_(device), timeout_(timeout), for_graphs_(for_graphs) {
  const OnDevice on_device(device_);
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for stream priorities");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "making a stream");
}

NcclSession::NcclSession(const NcclOptions& options)
    : NcclSession(options.rank, options.size, options.device, options.timeout, false) {
  const OnDevice on_device(device_);
  const ncclUniqueId id = agree_on_id(options);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // or a rank that never comes would hold the others for ever
  check(ncclCommInitRankConfig(&comm_, size_, id, rank_, &config), "joining the ranks");
}

std::unique_ptr<NcclSession> NcclSession::for_graphs(NcclSession& parent) {
  std::unique_ptr<NcclSession> session(
      new NcclSession(parent.rank_, parent.size_, parent.device_, parent.timeout_, true));
  const OnDevice on_device(parent.device_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  constexpr const char* kWhat = "joining the ranks for recorded steps";
  // Like every call on the parent it only begins here, whatever it returns. The parent is busy until the new
  // communicator exists, which is busy until it is connected.
  const ncclResult_t begun = ncclCommSplit(parent.comm(kWhat), 0, parent.rank_, &session->comm_, &config);
  parent.check(begun == ncclSuccess ? ncclInProgress : begun, kWhat);
  session->check(ncclInProgress, kWhat);
  return session;
}

NcclSession::~NcclSession() {
  const OnDevice on_device(device_);
  if (for_graphs_) {
    free();  // its calls have long returned, and blocking ones could wait for a dead peer
    if (freeing_.joinable()) freeing_.join();
  } else if (comm_ != nullptr && !is_freed_) {
    // Finalizing waits for peers; after a failure there may be none.
    ncclResult_t state = aborted_ ? ncclSystemError : ncclCommFinalize(comm_);
    const auto since = Clock::now();
    while (state == ncclInProgress && Clock::now() - since < std::chrono::seconds(5)) {
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) break;
      pause(since);
    }
    if (state == ncclSuccess)
      ncclCommDestroy(comm_);
    else
      ncclCommAbort(comm_);
  }
  cudaStreamDestroy(stream_);
}

void NcclSession::free() {
  if (std::exchange(is_freed_, true) || comm_ == nullptr) return;  // null: the ranks have not come together
  if (!for_graphs_) {
    ncclCommAbort(comm_);
    return;
  }
  // NCCL stops the device's work at once, and then waits until graphs that hold its calls are destroyed.
  freeing_ = std::thread([this] {
    cudaSetDevice(device_);
    ncclCommAbort(comm_);
  });
}

void NcclSession::fail(ncclResult_t result, const char* what) {
  give_up_if_aborted(what);
  const std::string reason =
      result == ncclInProgress
          ? fmt::format("not done after {} s; a peer has stopped or is slow", timeout_.count() / 1000)
          : fmt::format("{} ({})", ncclGetErrorString(result), ncclGetLastError(comm_));
  const std::string text = fmt::format(
      "nccl rank {}/{} on GPU {}: {}: {}.\nNCCL_DEBUG=INFO shows what NCCL sees; compare the last lines of all ranks",
      rank_, size_, device_, what, reason);
  abort(text);
  free();
  throw CommFailed(text);
}

void NcclSession::give_up_if_aborted(const char* what) {
  if (!aborted_) return;
  free();
  const std::lock_guard<std::mutex> lock(mutex_);
  throw CommFailed("nccl rank {}/{}: {} was given up: {}", rank_, size_, what, reason_);
}

bool NcclSession::is_late(Clock::time_point since) const {
  return timeout_.count() > 0 && Clock::now() - since > timeout_;
}

void NcclSession::check(ncclResult_t result, const char* what) {
  const auto since = Clock::now();
  while (result == ncclInProgress && !is_late(since)) {
    give_up_if_aborted(what);
    pause(since);
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result != ncclSuccess) fail(result, what);
}

void NcclSession::wait_for(cudaEvent_t event, const char* what) {
  const auto since = Clock::now();
  for (cudaError_t state = cudaEventQuery(event); state != cudaSuccess; state = cudaEventQuery(event)) {
    if (state != cudaErrorNotReady) check_cuda(state, what);
    give_up_if_aborted(what);
    ncclResult_t result = ncclSuccess;
    if (ncclCommGetAsyncError(comm_, &result) != ncclSuccess || (result != ncclSuccess && result != ncclInProgress))
      fail(result, what);
    if (is_late(since)) fail(ncclInProgress, what);
    pause(since);
  }
  give_up_if_aborted(what);  // an aborted collective ends, too
}

void NcclSession::abort(const std::string& reason) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_) return;
  reason_ = reason;
  aborted_ = true;
}

}  // namespace tutti
