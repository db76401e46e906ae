// Tutti's own kernels on slices of the flat buffers; nothing here waits for the device. What changes from step to step
// (learning rate, step number, gradient scale) is read from device memory, so that a recorded update can be repeated.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>

#include <type_traits>

#include "base/cuda_status.h"
#include "engine/optimizers/cpu.h"
#include "engine/optimizers/cuda.h"
#include "kernels/optimizer.h"

namespace tutti {
namespace {

bool is_recording() { return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None; }

SgdRule sgd_rule(const OptimizerOptions& options) {
  return {static_cast<float>(options.momentum), static_cast<float>(options.weight_decay), options.nesterov,
          options.rate_factor};
}

template <bool decoupled>
AdamRule adam_rule(const OptimizerOptions& options) {
  return {options.beta1, options.beta2, options.epsilon, options.weight_decay, decoupled, options.rate_factor};
}

LambRule lamb_rule(const OptimizerOptions& options) {
  return {options.beta1, options.beta2, options.epsilon, options.weight_decay, options.rate_factor};
}

/// What the kernels are told of options.
template <typename Rule>
using MakeRule = Rule (*)(const OptimizerOptions& options);

template <typename Rule>
class CudaOptimizer : public FlatOptimizer {
 public:
  CudaOptimizer(const OptimizerOptions& options, std::vector<std::string> state_names, const torch::Tensor& like,
                MakeRule<Rule> make_rule)
      : FlatOptimizer(options, std::move(state_names), like),
        make_rule_(make_rule),
        on_device_(torch::zeros({static_cast<int64_t>(sizeof(StepScalars))},
                                torch::TensorOptions(torch::kUInt8).device(like.device()))) {
    if (kIsLamb) sums_ = torch::zeros({kLambSums}, torch::TensorOptions(torch::kFloat64).device(like.device()));
  }

  bool can_be_recorded() const override { return true; }

  void prepare(double learning_rate, int64_t step) override {
    if (is_known_ && scalars_.learning_rate == learning_rate && scalars_.step == step) return;
    scalars_ = {learning_rate, step};
    is_known_ = true;
    check_cuda(set_on_device(device_scalars(), scalars_, at::cuda::getCurrentCUDAStream()),
               "setting the learning rate");
  }

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    // Recorded, the kernel will find what prepare() last said before it runs; slices keep their distance to that.
    if (!is_recording()) prepare(learning_rate, slice.step);
    UpdateRun run;
    run.values = slice.values.data_ptr<float>() + slice.begin;
    run.gradients = slice.gradients.data_ptr<float>() + slice.begin;
    for (std::size_t i = 0; i < state().size(); ++i) run.state[i] = state()[i].template data_ptr<float>() + slice.begin;
    run.count = slice.end - slice.begin;
    run.scalars = device_scalars();
    run.lag = scalars_.step - slice.step;
    if (gradient_scale.defined()) run.gradient_scale = gradient_scale.data_ptr<float>();
    const auto stream = at::cuda::getCurrentCUDAStream();
    const Rule rule = make_rule_(options_of(slice));
    if constexpr (kIsLamb)
      check_cuda(update_on_device(rule, run, sums_.data_ptr<double>(), stream), "updating parameters");
    else
      check_cuda(update_on_device(rule, run, stream), "updating parameters");
  }

 private:
  static constexpr bool kIsLamb = std::is_same_v<Rule, LambRule>;

  StepScalars* device_scalars() const { return reinterpret_cast<StepScalars*>(on_device_.data_ptr<uint8_t>()); }

  const MakeRule<Rule> make_rule_;
  torch::Tensor on_device_;  // StepScalars
  StepScalars scalars_;      // what lies there, once the work queued so far is done
  bool is_known_ = false;
  torch::Tensor sums_;  // lamb's norms, between its two kernels
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_cuda_sgd(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaOptimizer<SgdRule>>(options, sgd_state(options), like, sgd_rule);
}

std::unique_ptr<FlatOptimizer> make_cuda_adam(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaOptimizer<AdamRule>>(options, adam_state(), like, adam_rule<false>);
}

std::unique_ptr<FlatOptimizer> make_cuda_adamw(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaOptimizer<AdamRule>>(options, adam_state(), like, adam_rule<true>);
}

std::unique_ptr<FlatOptimizer> make_cuda_lamb(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaOptimizer<LambRule>>(options, adam_state(), like, lamb_rule);
}

}  // namespace tutti
