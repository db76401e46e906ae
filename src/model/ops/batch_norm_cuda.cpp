// Batch normalization by Tutti's own kernels, as a function that autograd knows.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/cuda_status.h"
#include "kernels/batch_norm.h"
#include "model/ops/batch_norm_fused.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

/// Zeroes that the kernels count in, and which are zeroes again afterwards. Each stream has its own, as kernels of one
/// stream run one behind the other.
torch::Tensor counters_of(const c10::cuda::CUDAStream& stream) {
  static std::mutex mutex;
  // Never destroyed: CUDA may be gone before.
  static auto* const known = new std::map<std::pair<c10::DeviceIndex, cudaStream_t>, torch::Tensor>;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::pair<c10::DeviceIndex, cudaStream_t> key(stream.device_index(), stream.stream());
  const auto found = known->find(key);
  if (found != known->end()) return found->second;
  const torch::Tensor counters =
      torch::zeros({kNormCounters}, torch::TensorOptions(torch::kInt32).device(stream.device()));
  // What is made while a graph is recorded holds zeroes when that graph runs, and only then.
  if (c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None) (*known)[key] = counters;
  return counters;
}

/// Memory of one call of the kernels.
struct Workspace {
  torch::Tensor sums, counters;
  cudaStream_t stream;

  Workspace(const torch::Tensor& x, const NormShape& shape)
      : sums(torch::empty({norm_sums(shape)}, torch::TensorOptions(torch::kFloat).device(x.device()))) {
    const c10::cuda::CUDAStream current = at::cuda::getCurrentCUDAStream(x.device().index());
    counters = counters_of(current);
    stream = current;
  }
  NormScratch scratch() const {
    return {sums.data_ptr<float>(), reinterpret_cast<unsigned*>(counters.data_ptr<int32_t>())};
  }
};

NormShape shape_of(const torch::Tensor& x) {
  return {x.numel() / x.size(1), x.size(1), x.scalar_type() == torch::kBFloat16};
}

bool is_aligned(const torch::Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 16 == 0; }

/// As the kernels want it: channels-last and from a multiple of 16 bytes on.
torch::Tensor for_kernels(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.contiguous(kChannelsLast);
  return is_aligned(dense) ? dense : dense.clone(kChannelsLast);
}

torch::Tensor of_channels(const torch::Tensor& x) {
  return torch::empty({x.size(1)}, torch::TensorOptions(torch::kFloat).device(x.device()));
}

float* data_of(const torch::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

struct BatchNorm : torch::autograd::Function<BatchNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given, const torch::Tensor& weight,
                               const torch::Tensor& bias, const std::optional<torch::Tensor>& residual,
                               const FusedNorm& norm) {
    const c10::cuda::CUDAGuard guard(given.device());
    const torch::Tensor x = for_kernels(given);
    const torch::Tensor added = residual ? for_kernels(*residual) : torch::Tensor();
    const torch::Tensor y = torch::empty_like(x, x.options(), kChannelsLast);
    const torch::Tensor mean = of_channels(x), inverse_deviation = of_channels(x);
    NormForward call;
    call.shape = shape_of(x);
    const Workspace workspace(x, call.shape);
    torch::Tensor mask;
    if (added.defined()) {
      mask = torch::empty({norm_mask_bytes(call.shape)}, torch::TensorOptions(torch::kUInt8).device(x.device()));
      call.residual = added.data_ptr();
      call.mask = mask.data_ptr<uint8_t>();
    }
    call.x = x.data_ptr();
    call.y = y.data_ptr();
    call.has_relu = norm.has_relu;
    call.weight = weight.data_ptr<float>();
    call.bias = bias.data_ptr<float>();
    call.running_mean = data_of(norm.running_mean);
    call.running_variance = data_of(norm.running_var);
    call.momentum = norm.momentum;
    call.epsilon = norm.epsilon;
    call.mean = mean.data_ptr<float>();
    call.inverse_deviation = inverse_deviation.data_ptr<float>();
    call.scratch = workspace.scratch();
    check_cuda(norm_forward_on_device(call, workspace.stream), "batch normalization");
    context->save_for_backward({x, weight, bias, mean, inverse_deviation, mask});
    context->saved_data["has_relu"] = norm.has_relu;
    return y;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mask = saved[5];
    const c10::cuda::CUDAGuard guard(x.device());
    const torch::Tensor y_gradient = for_kernels(gradients[0]);
    const torch::Tensor x_gradient = torch::empty_like(x, x.options(), kChannelsLast);
    const torch::Tensor weight_gradient = of_channels(x), bias_gradient = of_channels(x);
    NormBackward call;
    call.shape = shape_of(x);
    const Workspace workspace(x, call.shape);
    torch::Tensor residual_gradient;
    if (mask.defined()) {
      residual_gradient = torch::empty_like(x, x.options(), kChannelsLast);
      call.relu = NormRelu::from_mask;
      call.mask = mask.data_ptr<uint8_t>();
      call.residual_gradient = residual_gradient.data_ptr();
    } else if (context->saved_data["has_relu"].toBool()) {
      call.relu = NormRelu::of_value;
    }
    call.x = x.data_ptr();
    call.y_gradient = y_gradient.data_ptr();
    call.weight = weight.data_ptr<float>();
    call.bias = bias.data_ptr<float>();
    call.mean = saved[3].data_ptr<float>();
    call.inverse_deviation = saved[4].data_ptr<float>();
    call.x_gradient = x_gradient.data_ptr();
    call.weight_gradient = weight_gradient.data_ptr<float>();
    call.bias_gradient = bias_gradient.data_ptr<float>();
    call.scratch = workspace.scratch();
    check_cuda(norm_backward_on_device(call, workspace.stream), "the gradient of batch normalization");
    return {x_gradient, weight_gradient, bias_gradient, residual_gradient, torch::Tensor()};
  }
};

/// Numbers of the channels, side by side; undefined is fine where `is_optional`.
bool is_channels(const torch::Tensor& tensor, const torch::Tensor& x, bool is_optional) {
  if (!tensor.defined()) return is_optional;
  return tensor.device() == x.device() && tensor.scalar_type() == torch::kFloat && tensor.is_contiguous();
}

}  // namespace

bool can_fuse(const torch::Tensor& x, const FusedNorm& norm) {
  if (!x.is_cuda() || x.dim() != 4 || x.numel() == 0 || !x.is_contiguous(kChannelsLast)) return false;
  if (x.scalar_type() != torch::kFloat && x.scalar_type() != torch::kBFloat16) return false;
  if (x.size(1) > kMostNormChannels || x.numel() <= x.size(1)) return false;
  if (!is_channels(norm.weight, x, false) || !is_channels(norm.bias, x, false)) return false;
  if (!is_channels(norm.running_mean, x, true) || !is_channels(norm.running_var, x, true)) return false;
  const torch::Tensor& residual = norm.residual;
  return !residual.defined() ||
         (norm.has_relu && residual.scalar_type() == x.scalar_type() && residual.sizes() == x.sizes());
}

torch::Tensor fused_batch_norm(const torch::Tensor& x, const FusedNorm& norm) {
  const std::optional<torch::Tensor> residual =
      norm.residual.defined() ? std::optional<torch::Tensor>(norm.residual) : std::nullopt;
  return BatchNorm::apply(x, norm.weight, norm.bias, residual, norm);
}

}  // namespace tutti
