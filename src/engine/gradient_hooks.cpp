#include "engine/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tutti {

GradientHooks::GradientHooks(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t)> callback)
    : target_(std::make_shared<Target>(Target{std::move(callback)})) {
  using torch::autograd::variable_list;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters[i].tensor);
    const std::weak_ptr<Target> target = target_;
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [target, i](const variable_list& outputs, const variable_list&) {
          if (const auto alive = target.lock()) alive->callback(i);
          return outputs;
        }));
    accumulators_.push_back(std::make_shared<decltype(accumulator)>(accumulator));  // whichever pointer libtorch uses
  }
}

}  // namespace tutti
