#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "engine/flat_space.h"
#include "engine/optimizer.h"
#include "plan/pending_updates.h"
#include "tutti/communicator.h"
#include "tutti/plan.h"

namespace tutti {

/// Applies summed gradients to the parameters: owns the optimizer, whole or this rank's shares of it, and knows since
/// when each parameter is updated. Borrows space and communicator.
class ParameterUpdate {
 public:
  /// `groups`: the options of each group of parameters, of one optimizer.
  ParameterUpdate(std::vector<OptimizerOptions> groups, double clip_norm, const FlatSpace& space, Communicator& comm);

  /// Updates from now on belong to this step, 1 for the first. One learning rate for each group, or for all.
  void begin(int64_t step, std::vector<double> learning_rates);
  void set_options(std::size_t group, const OptimizerOptions& options);
  /// Whether an update can be recorded on a GPU and repeated.
  bool can_be_recorded() const;
  /// Tells the device what a recorded update of this step is to use.
  void prepare(int64_t step, double learning_rate);
  /// Of the step that begin() was last told.
  const std::vector<double>& learning_rates() const { return learning_rates_; }
  /// Some parameter has never had a gradient. All ranks know that together.
  bool has_new_parameters() const;
  /// A collective while has_new_parameters(): those that got a gradient on any rank (`written`, by parameter) are
  /// updated from this step on.
  void agree_on_new_parameters(const std::vector<char>& written);
  /// Of all gradients as they lie now; a tensor of one number on their device.
  torch::Tensor gradient_norm() const;
  /// Everything, clipped; the optimizer is whole. Gradients are multiplied by `inverse_scale` first; where one is not
  /// finite nothing changes, and the result is false.
  bool update_all(std::optional<double> inverse_scale);
  /// A piece of a transfer of `plan`, as far as it is this rank's to update.
  void update_piece(const Plan& plan, const UpdatePiece& piece, TraceBuffer* recording);

  /// Keeps this rank's share of every reduce_scatter of a plan alone.
  void shard(const Plan& plan);
  /// Makes the optimizer whole again. A collective if it was sharded, by `plan`.
  void unite(const Plan& plan);
  /// Buffers laid out like the flat space. The optimizer is whole.
  const std::vector<torch::Tensor>& whole_state() const { return whole_.optimizer->state(); }

  int64_t state_bytes() const;
  /// By name, each a copy in its parameter's shape. A collective if sharded, by `plan`.
  std::vector<std::pair<std::string, torch::Tensor>> named_state(const Plan& plan) const;
  const std::vector<int64_t>& first_updates() const { return first_update_; }
  /// The optimizer is whole. `find` returns a state tensor by name or throws.
  void restore(std::vector<int64_t> first_updates, const std::function<torch::Tensor(const std::string&)>& find);

 private:
  /// The optimizer of a share of the flat space, whose buffers begin at element `begin`.
  struct Share {
    int64_t begin = 0, end = 0;
    std::unique_ptr<FlatOptimizer> optimizer;
  };

  /// What gradients are multiplied by; undefined for 1.
  torch::Tensor gradient_scale(double inverse_scale) const;
  double rate_of(int group) const {
    return learning_rates_[learning_rates_.size() > 1 ? static_cast<std::size_t>(group) : 0];
  }
  void update(const Share& share, int64_t begin, int64_t end, const torch::Tensor& gradient_scale);
  std::vector<torch::Tensor> gathered_state(const Plan& plan) const;
  const FlatOptimizer* any_optimizer() const;

  std::vector<OptimizerOptions> groups_;
  const double clip_norm_;
  const FlatSpace& space_;
  Communicator& comm_;
  Share whole_;                               // the optimizer of everything, unless it is sharded
  std::vector<std::optional<Share>> shares_;  // by transfer, where it is
  std::vector<int64_t> first_update_;         // by parameter; 0: never
  int64_t step_ = 0;
  std::vector<double> learning_rates_ = {0.0};
};

}  // namespace tutti
