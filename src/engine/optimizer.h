#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/optimizer.h"

namespace tutti {

/// A slice of the flat buffers to update.
struct UpdateSlice {
  torch::Tensor values;
  torch::Tensor gradients;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;                           // 1 in the first update of these parameters
  const OptimizerOptions* options = nullptr;  // of these parameters; null: those that the optimizer was made with
};

/// An optimizer on flat buffers. Most act element by element, in one pass over the memory: any slice can be updated on
/// its own, and the result does not depend on how the space was sliced. For one that needs whole tensors a slice is
/// exactly one tensor and the padding behind it, which is zero and stays so. Same formulas as torch::optim.
class FlatOptimizer {
 public:
  virtual ~FlatOptimizer() = default;
  /// The buffers that belong to a checkpoint, each as long as the flat space, and their names ("exp_avg").
  const std::vector<std::string>& state_names() const { return state_names_; }
  const std::vector<torch::Tensor>& state() const { return state_; }
  bool needs_whole_tensors() const { return needs_whole_tensors_; }
  /// Whether update() may be recorded on a GPU and repeated: it then takes from the host only what prepare() says.
  virtual bool can_be_recorded() const { return false; }
  /// Before a step is recorded, and before each repetition: the learning rate, and the step number of a parameter that
  /// is updated since the first step.
  virtual void prepare(double /*learning_rate*/, int64_t /*step*/) {}
  /// `gradient_scale`: a scalar tensor on the device that multiplies the gradients first, or undefined for 1.
  virtual void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) = 0;

 protected:
  /// With a zeroed buffer for each name.
  FlatOptimizer(const OptimizerOptions& options, std::vector<std::string> state_names, const torch::Tensor& like);

  const OptimizerOptions& options_of(const UpdateSlice& slice) const {
    return slice.options != nullptr ? *slice.options : options_;
  }

 private:
  const OptimizerOptions options_;
  const bool needs_whole_tensors_;
  const std::vector<std::string> state_names_;
  std::vector<torch::Tensor> state_;
};

/// `like` is the flat parameter buffer: length and device. Throws UsageError for an unknown name or options that make
/// no sense.
std::unique_ptr<FlatOptimizer> make_optimizer(const OptimizerOptions& options, const torch::Tensor& like);

}  // namespace tutti
