#pragma once

#include <functional>

#include "comm/communicator.h"
#include "model/model.h"

namespace tutti {

struct EvalOptions {
  int64_t batch = 250;
  int workers = 1;
  int prefetch = 4;
  torch::Device device = torch::kCPU;
};

/// Evaluates a model on a data set, each rank a share of it, every sample exactly once; all ranks get the totals.
/// `progress` is told how many of this rank's batches are done. A collective.
EvalCounts evaluate(Model& model, const std::shared_ptr<const Dataset>& data, Communicator& comm,
                    const EvalOptions& options, const std::function<void(int64_t done, int64_t all)>& progress = {});

/// A batch on the device, copied without waiting where its memory is pinned.
Batch to_device(const Batch& batch, torch::Device device);

}  // namespace tutti
