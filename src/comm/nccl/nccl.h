#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "tutti/communicator.h"

namespace tutti {

struct NcclOptions {
  int rank = 0;
  int size = 1;
  int device = 0;  // the GPU of this rank; no other rank's
  /// Gives every rank the text that rank 0 passes: how the ranks find each other.
  std::function<std::string(const std::string& of_rank_0)> share;
  /// How long the ranks may take to come together, and how long a wait goes on; 0: for ever.
  std::chrono::milliseconds timeout{0};
};

/// Ranks with a GPU each: NVLink, PCIe, InfiniBand or sockets, whatever NCCL finds. allocate() gives device memory, and
/// collectives take it as it is; host memory goes through the device, so it is for what is small or rare.
/// Other than the contract says, sums are made in an order that NCCL chooses, what ranks call is not compared, messages
/// between two ranks must be received in the order sent whatever their tags, and abort() reaches the others as a
/// connection that broke; the first collective of a kind connects, and its call returns when all ranks have made it.
/// Returns when all ranks have come. Throws UsageError where Tutti was built without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(const NcclOptions& options);

/// "2.28.9"; empty where Tutti was built without NCCL.
std::string nccl_version();

}  // namespace tutti
