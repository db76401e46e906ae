#include "model/ops/checkpoint.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/utils.h>

#include <mutex>
#include <utility>

#include "base/torch_compat.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

thread_local bool second_run = false;

/// Where torch's random generators of the CPU and of one more device stand.
class RandomState {
 public:
  explicit RandomState(torch::Device device) : device_(device) {
    cpu_ = state_of(torch::kCPU);
    if (!device.is_cpu()) other_ = state_of(device);
  }
  void restore() const {
    set_state(torch::kCPU, cpu_);
    if (!device_.is_cpu()) set_state(device_, other_);
  }

 private:
  static torch::Tensor state_of(torch::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
  }
  static void set_state(torch::Device device, const torch::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }

  torch::Device device_;
  torch::Tensor cpu_, other_;
};

/// One tensor, or two.
using Outputs = std::function<tensor_list(const std::vector<torch::Tensor>& inputs)>;

/// What the second run needs besides the inputs.
struct Rerun : torch::CustomClassHolder {
  Rerun(Outputs b, torch::Device device) : block(std::move(b)), random(device), is_bf16(Bf16Autocast::is_on()) {}

  tensor_list operator()(const std::vector<torch::Tensor>& inputs) const {
    const RandomState now(inputs[0].device());
    random.restore();
    const torch::AutoGradMode with_gradients(true);
    const Bf16Autocast autocast(is_bf16);
    second_run = true;
    tensor_list outputs;
    try {
      outputs = block(inputs);
    } catch (...) {
      second_run = false;
      throw;
    }
    second_run = false;
    now.restore();
    return outputs;
  }

  Outputs block;
  RandomState random;
  bool is_bf16;
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  /// `any` makes the result require a gradient even if no input does: the block's parameters want theirs.
  static tensor_list forward(AutogradContext* context, const c10::intrusive_ptr<Rerun>& rerun, at::TensorList inputs,
                             const torch::Tensor& /*any*/) {
    context->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
    context->save_for_backward(inputs.vec());
    context->set_materialize_grads(false);
    return rerun->block(inputs.vec());
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    std::vector<torch::Tensor> inputs;
    for (const torch::Tensor& saved : context->get_saved_variables())
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
    const auto rerun = c10::static_intrusive_pointer_cast<Rerun>(context->saved_data["rerun"].toCapsule());
    const tensor_list outputs = (*rerun)(inputs);
    tensor_list used, their_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      used.push_back(outputs[i]);
      their_gradients.push_back(gradients[i]);
    }
    torch::autograd::backward(used, their_gradients);
    tensor_list results{torch::Tensor()};  // for `rerun`
    for (const torch::Tensor& input : inputs) results.push_back(input.grad());
    results.emplace_back();  // for `any`
    return results;
  }
};

tensor_list run(Outputs block, const std::vector<torch::Tensor>& inputs) {
  const torch::Tensor any = torch::empty({0}).requires_grad_();
  const auto rerun = c10::make_intrusive<Rerun>(std::move(block), inputs.at(0).device());
  return Checkpoint::apply(rerun, at::TensorList(inputs), any);
}

}  // namespace

torch::Tensor checkpoint(Block block, const std::vector<torch::Tensor>& inputs) {
  if (!torch::GradMode::is_enabled()) return block(inputs);
  return run([block = std::move(block)](const std::vector<torch::Tensor>& in) { return tensor_list{block(in)}; },
             inputs)[0];
}

TwoUses checkpoint_for_two(BlockForTwo block, const std::vector<torch::Tensor>& inputs) {
  if (!torch::GradMode::is_enabled()) return block(inputs);
  const tensor_list outputs = run(
      [block = std::move(block)](const std::vector<torch::Tensor>& in) {
        const TwoUses both = block(in);
        return both.first.is_same(both.second) ? tensor_list{both.first} : tensor_list{both.first, both.second};
      },
      inputs);
  return {outputs.front(), outputs.back()};
}

bool is_second_run() { return second_run; }

}  // namespace tutti
