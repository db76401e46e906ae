#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/model.h"
#include "tutti/communicator.h"
#include "tutti/records.h"

namespace tutti {

/// Where and how a model wants its batches.
struct BatchPlace {
  torch::Device device = torch::kCPU;
  bool channels_last = false;  // images; on a GPU only
};

struct EvalOptions {
  int64_t batch = 250;
  int workers = 1;
  int prefetch = 4;
  BatchPlace place;
  bool bf16 = false;  // autocast, as in training
};

/// Evaluates a model on a data set, each rank a share of it, every sample exactly once; all ranks get the totals.
/// `goes_on` is told how many of this rank's batches are done, and is called as often on every rank. Where it says no,
/// on all of them after the same batch, there is no result. A collective.
std::optional<EvalCounts> evaluate(Model& model, const std::shared_ptr<const Dataset>& data, Communicator& comm,
                                   const EvalOptions& options,
                                   const std::function<bool(int64_t done, int64_t all)>& goes_on = {});

/// For records.
TestResults test_results(const EvalCounts& counts);

/// For people, the metric by which the model is judged: "test accuracy 0.9876".
std::string test_headline(const EvalCounts& counts);

/// A batch on the device, copied without waiting where its memory is pinned.
Batch to_device(const Batch& batch, const BatchPlace& place);

}  // namespace tutti
