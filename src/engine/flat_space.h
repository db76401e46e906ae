#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "tutti/communicator.h"
#include "tutti/engine.h"
#include "tutti/plan.h"

namespace tutti {

/// A trainable parameter. `tensor` is the model's own; its data and gradient are views into the FlatSpace.
struct FlatParameter {
  std::string name;
  torch::Tensor tensor;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // dense; channels-last weights stay so
  int group;                     // of the optimizer's options
};

/// All trainable parameters of a model in one contiguous buffer and their gradients in another, laid out in the order
/// of a plan's slots. Merging tensors is then choosing a longer slice, splitting one a shorter: nothing is copied in or
/// out. On the CPU the gradients lie in the communicator's own memory, so that collectives need no staging either.
class FlatSpace {
 public:
  /// Takes over the tensors that require gradients (a tied one once), in their order reversed: a first guess
  /// at the order of backward. A collective. Throws Error for parameters that are not float32, and on ranks whose
  /// models differ, naming the first difference.
  FlatSpace(const std::vector<NamedTensor>& tensors, Communicator& comm);

  const std::vector<FlatParameter>& parameters() const { return parameters_; }  // in their own order
  const std::vector<GradientSlot>& slots() const { return slots_; }
  std::size_t slot_of(std::size_t parameter) const { return slot_of_parameter_[parameter]; }
  int64_t elements() const { return elements_; }

  torch::Tensor values() const { return values_; }
  torch::Tensor gradients() const { return gradients_; }
  torch::Tensor gradient(std::size_t parameter) const { return gradient_views_[parameter]; }

  /// The part of any buffer of this space's length that belongs to a parameter, in the parameter's shape.
  torch::Tensor view(const torch::Tensor& flat, std::size_t parameter) const;

  /// Moves everything to the places that `slots` name; `others` are more buffers laid out alike (optimizer state).
  void lay_out(const std::vector<GradientSlot>& slots, const std::vector<torch::Tensor>& others);

  /// A profile without times: for the first plan, before anything was measured.
  Profile unmeasured_profile() const;

 private:
  void bind_views();

  std::vector<FlatParameter> parameters_;
  std::vector<GradientSlot> slots_;
  std::vector<std::size_t> slot_of_parameter_;
  int64_t elements_ = 0;
  torch::Tensor values_;
  torch::Tensor gradients_;
  std::vector<torch::Tensor> gradient_views_;  // by parameter
};

}  // namespace tutti
