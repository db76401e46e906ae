#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/cuda_status.h"
#include "comm/nccl/nccl.h"

namespace tutti {

/// The calling thread's work goes to this GPU as long as the guard lives.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// NCCL's communicator with its stream. Nothing here blocks for longer than the time-out, whatever the peers do.
class NcclSession {
 public:
  explicit NcclSession(const NcclOptions& options);
  /// The ranks of `parent` once more, for calls that are recorded in a graph: NCCL records only calls that are through
  /// when they return.
  static std::unique_ptr<NcclSession> for_graphs(NcclSession& parent);
  ~NcclSession();
  NcclSession(const NcclSession&) = delete;
  NcclSession& operator=(const NcclSession&) = delete;

  /// For the next NCCL call; throws CommFailed once aborted.
  ncclComm_t comm(const char* what) {
    give_up_if_aborted(what);
    return comm_;
  }
  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }

  /// Takes what an NCCL call returned and waits until the call is through; throws CommFailed when it failed.
  void check(ncclResult_t result, const char* what);
  /// Returns when `event` has happened; throws CommFailed when it never will or does not in time.
  void wait_for(cudaEvent_t event, const char* what);
  /// Any thread. What waits gives up at once, and frees NCCL's communicator: it must not vanish under a caller.
  void abort(const std::string& reason) noexcept;

 private:
  NcclSession(int rank, int size, int device, std::chrono::milliseconds timeout, bool for_graphs);
  /// Ends what NCCL does on the device and frees its communicator.
  void free();
  [[noreturn]] void fail(ncclResult_t result, const char* what);
  void give_up_if_aborted(const char* what);
  bool is_late(std::chrono::steady_clock::time_point since) const;

  const int rank_, size_, device_;
  const std::chrono::milliseconds timeout_;
  const bool for_graphs_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  bool is_freed_ = false;
  std::thread freeing_;  // of a communicator that graphs refer to: it takes until they are gone
  std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
  std::atomic<bool> aborted_{false};
};

}  // namespace tutti
