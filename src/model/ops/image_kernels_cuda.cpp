// Tutti's own kernels for images that lie channels-last, as functions that autograd knows.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/cuda_status.h"
#include "base/torch_compat.h"
#include "kernels/batch_norm.h"
#include "kernels/fold_pixels.h"
#include "kernels/join.h"
#include "kernels/max_pool.h"
#include "model/ops/image_kernels.h"
#include "model/ops/plain.h"

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
      torch::zeros({kChannelCounters}, torch::TensorOptions(torch::kInt32).device(stream.device()));
  // What is made while a graph is recorded holds zeroes when that graph runs, and only then.
  if (c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None) (*known)[key] = counters;
  return counters;
}

/// Memory of one call of the kernels.
struct Workspace {
  torch::Tensor sums, counters;
  cudaStream_t stream;

  Workspace(const torch::Tensor& x, int64_t channels)
      : sums(torch::empty({channel_sums(channels)}, torch::TensorOptions(torch::kFloat).device(x.device()))) {
    const c10::cuda::CUDAStream current = at::cuda::getCurrentCUDAStream(x.device().index());
    counters = counters_of(current);
    stream = current;
  }
  ChannelScratch scratch() const {
    return {sums.data_ptr<float>(), reinterpret_cast<unsigned*>(counters.data_ptr<int32_t>())};
  }
};

ImageShape shape_of(const torch::Tensor& x) {
  return {x.numel() / x.size(1), x.size(1), x.scalar_type() == torch::kBFloat16};
}

bool is_aligned(const torch::Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 16 == 0; }

/// As the kernels want it: channels-last and from a multiple of 16 bytes on.
torch::Tensor for_kernels(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.contiguous(kChannelsLast);
  return is_aligned(dense) ? dense : dense.clone(kChannelsLast);
}

/// Elements from one pixel to the next where pixels lie one behind the other at equal distances, the kernels' packs of
/// channels at multiples of 16 bytes; else 0.
int64_t row_stride(const torch::Tensor& tensor) {
  const int64_t row = tensor.size(3) > 1   ? tensor.stride(3)
                      : tensor.size(2) > 1 ? tensor.stride(2)
                      : tensor.size(0) > 1 ? tensor.stride(0)
                                           : tensor.size(1);
  const int64_t width = tensor.size(3), height = tensor.size(2);
  const bool is_regular = (tensor.size(1) == 1 || tensor.stride(1) == 1) && row >= tensor.size(1) &&
                          (height == 1 || tensor.stride(2) == width * row) &&
                          (tensor.size(0) == 1 || tensor.stride(0) == height * width * row);
  const bool is_in_packs = tensor.size(1) % 8 != 0 || (row % 8 == 0 && is_aligned(tensor));
  return is_regular && is_in_packs ? row : 0;
}

torch::Tensor of_channels(const torch::Tensor& x) {
  return torch::empty({x.size(1)}, torch::TensorOptions(torch::kFloat).device(x.device()));
}

torch::Tensor bytes_like(const torch::Tensor& x, int64_t count) {
  return torch::empty({count}, torch::TensorOptions(torch::kUInt8).device(x.device()));
}

cudaStream_t stream_of(const torch::Tensor& x) { return at::cuda::getCurrentCUDAStream(x.device().index()); }

float* data_of(const torch::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

struct BatchNorm : torch::autograd::Function<BatchNorm> {
  /// The result, twice: each with a gradient of its own.
  static tensor_list forward(AutogradContext* context, const torch::Tensor& given, const torch::Tensor& weight,
                             const torch::Tensor& bias, const std::optional<torch::Tensor>& residual,
                             const FusedNorm& norm) {
    const c10::cuda::CUDAGuard guard(given.device());
    const torch::Tensor x = for_kernels(given);
    const torch::Tensor added = residual ? for_kernels(*residual) : torch::Tensor();
    const torch::Tensor y = torch::empty_like(x, x.options(), kChannelsLast);
    const torch::Tensor mean = of_channels(x), inverse_deviation = of_channels(x);
    NormForward call;
    call.shape = shape_of(x);
    const Workspace workspace(x, call.shape.channels);
    torch::Tensor mask;
    if (added.defined()) {
      mask = bytes_like(x, norm_mask_bytes(call.shape));
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
    context->set_materialize_grads(false);
    const at::AutoDispatchBelowADInplaceOrView not_a_view;  // for autograd: views of one tensor share their gradient
    return {y, y.detach()};
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mask = saved[5];
    const c10::cuda::CUDAGuard guard(x.device());
    // Of the two gradients one may be missing, and one may be a slice of something wider.
    torch::Tensor first = gradients[0], second = gradients[1];
    if (!first.defined() || (second.defined() && row_stride(first) > 0 && row_stride(second) == 0))
      std::swap(first, second);
    first = for_kernels(first);
    if (second.defined() && row_stride(second) == 0) second = for_kernels(second);
    const torch::Tensor x_gradient = torch::empty_like(x, x.options(), kChannelsLast);
    const torch::Tensor weight_gradient = of_channels(x), bias_gradient = of_channels(x);
    NormBackward call;
    call.shape = shape_of(x);
    const Workspace workspace(x, call.shape.channels);
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
    call.y_gradient = first.data_ptr();
    if (second.defined()) {
      call.y_gradient2 = second.data_ptr();
      call.y_gradient2_row = row_stride(second);
    }
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

MaxPool pool_of(at::IntArrayRef sizes, torch::ScalarType type, int64_t window, int64_t stride, int64_t padding) {
  return {sizes[0],
          sizes[2],
          sizes[3],
          sizes[1],
          type == torch::kBFloat16,
          static_cast<int>(window),
          static_cast<int>(stride),
          static_cast<int>(padding)};
}

struct MaxPooling : torch::autograd::Function<MaxPooling> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given, int64_t window, int64_t stride,
                               int64_t padding) {
    const c10::cuda::CUDAGuard guard(given.device());
    const torch::Tensor x = for_kernels(given);
    const MaxPool pool = pool_of(x.sizes(), x.scalar_type(), window, stride, padding);
    const torch::Tensor y = torch::empty({pool.batch, pool.channels, pool.pooled_height(), pool.pooled_width()},
                                         x.options(), kChannelsLast);
    const torch::Tensor winners = bytes_like(x, y.numel());
    check_cuda(max_pool_on_device(pool, x.data_ptr(), y.data_ptr(), winners.data_ptr<uint8_t>(), stream_of(x)),
               "pooling");
    context->save_for_backward({winners});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["options"] = std::vector<int64_t>{window, stride, padding};
    return y;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const torch::Tensor winners = context->get_saved_variables()[0];
    const c10::cuda::CUDAGuard guard(winners.device());
    const torch::Tensor y_gradient = for_kernels(gradients[0]);
    const std::vector<int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const std::vector<int64_t> options = context->saved_data["options"].toIntVector();
    const MaxPool pool = pool_of(sizes, y_gradient.scalar_type(), options[0], options[1], options[2]);
    const torch::Tensor x_gradient = torch::empty(sizes, y_gradient.options(), kChannelsLast);
    check_cuda(max_pool_gradient_on_device(pool, y_gradient.data_ptr(), winners.data_ptr<uint8_t>(),
                                           x_gradient.data_ptr(), stream_of(winners)),
               "the gradient of pooling");
    return {x_gradient, torch::Tensor(), torch::Tensor(), torch::Tensor()};
  }
};

Join join_of(const torch::Tensor& gradient_or_first, int64_t first_channels, int64_t second_channels) {
  return {gradient_or_first.numel() / gradient_or_first.size(1), first_channels, second_channels,
          gradient_or_first.scalar_type() == torch::kBFloat16};
}

struct Joining : torch::autograd::Function<Joining> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given_first,
                               const torch::Tensor& given_second, const torch::Tensor& bias) {
    const c10::cuda::CUDAGuard guard(given_first.device());
    const torch::Tensor first = for_kernels(given_first), second = for_kernels(given_second);
    const torch::Tensor to = torch::empty({first.size(0), first.size(1) + second.size(1), first.size(2), first.size(3)},
                                          first.options(), kChannelsLast);
    check_cuda(join_on_device(join_of(first, first.size(1), second.size(1)), first.data_ptr(), second.data_ptr(),
                              bias.data_ptr<float>(), to.data_ptr(), stream_of(first)),
               "putting images side by side");
    context->saved_data["channels"] = first.size(1);
    return to;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const c10::cuda::CUDAGuard guard(gradients[0].device());
    const torch::Tensor gradient = for_kernels(gradients[0]);
    const int64_t first_channels = context->saved_data["channels"].toInt();
    const int64_t second_channels = gradient.size(1) - first_channels;
    const torch::Tensor second = torch::empty({gradient.size(0), second_channels, gradient.size(2), gradient.size(3)},
                                              gradient.options(), kChannelsLast);
    const torch::Tensor bias = of_channels(second);
    const Workspace workspace(gradient, second_channels);
    check_cuda(split_on_device(join_of(gradient, first_channels, second_channels), gradient.data_ptr(),
                               second.data_ptr(), bias.data_ptr<float>(), workspace.scratch(), workspace.stream),
               "taking images apart");
    return {gradient.narrow(1, 0, first_channels), second, bias};
  }
};

bool is_image(const torch::Tensor& x) {
  return x.is_cuda() && x.dim() == 4 && x.numel() > 0 && x.is_contiguous(kChannelsLast) &&
         (x.scalar_type() == torch::kFloat || x.scalar_type() == torch::kBFloat16) && !PlainOperations::is_on();
}

/// Numbers of the channels, side by side; undefined is fine where `is_optional`.
bool is_channels(const torch::Tensor& tensor, const torch::Tensor& x, bool is_optional) {
  if (!tensor.defined()) return is_optional;
  return tensor.device() == x.device() && tensor.scalar_type() == torch::kFloat && tensor.is_contiguous();
}

}  // namespace

bool can_fuse(const torch::Tensor& x, const FusedNorm& norm) {
  if (!is_image(x) || x.size(1) > kMostImageChannels || x.numel() <= x.size(1)) return false;
  if (!is_channels(norm.weight, x, false) || !is_channels(norm.bias, x, false)) return false;
  if (!is_channels(norm.running_mean, x, true) || !is_channels(norm.running_var, x, true)) return false;
  const torch::Tensor& residual = norm.residual;
  return !residual.defined() ||
         (norm.has_relu && residual.scalar_type() == x.scalar_type() && residual.sizes() == x.sizes());
}

TwoUses fused_batch_norm(const torch::Tensor& x, const FusedNorm& norm) {
  const std::optional<torch::Tensor> residual =
      norm.residual.defined() ? std::optional<torch::Tensor>(norm.residual) : std::nullopt;
  const tensor_list both = BatchNorm::apply(x, norm.weight, norm.bias, residual, norm);
  return {both[0], both[1]};
}

bool can_pool_fused(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding) {
  return is_image(x) && has_max_pool_kernel(window, stride, padding, x.size(3), x.size(1)) &&
         x.size(2) + 2 * padding >= window && x.size(3) + 2 * padding >= window;
}

torch::Tensor fused_max_pool(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding) {
  return MaxPooling::apply(x, window, stride, padding);
}

bool can_join_fused(const torch::Tensor& first, const torch::Tensor& source, const torch::Tensor& bias) {
  return is_image(first) && is_image(source) && first.scalar_type() == source.scalar_type() && first.size(1) % 8 == 0 &&
         bias.size(0) % 8 == 0 && bias.size(0) <= kMostImageChannels && is_channels(bias, first, false);
}

torch::Tensor fused_join(const torch::Tensor& first, const torch::Tensor& second, const torch::Tensor& bias) {
  return Joining::apply(first, second.to(first.scalar_type()), bias);
}

bool can_fold_pixels(const torch::Tensor& images) {
  return is_image(images) && images.scalar_type() == torch::kFloat && images.size(1) <= 4 && images.size(2) % 2 == 0 &&
         images.size(3) % 2 == 0 && !images.requires_grad() && Bf16Autocast::is_on();
}

torch::Tensor fold_pixels(const torch::Tensor& images, int64_t margin_before, int64_t margin_after) {
  const c10::cuda::CUDAGuard guard(images.device());
  const FoldPixels fold{images.size(0),
                        images.size(2),
                        images.size(3),
                        images.size(1),
                        static_cast<int>(margin_before),
                        static_cast<int>(margin_after)};
  const torch::Tensor folded =
      torch::empty({fold.batch, fold.folded_channels(), fold.folded_height(), fold.folded_width()},
                   images.options().dtype(torch::kBFloat16), kChannelsLast);
  check_cuda(fold_pixels_on_device(fold, images.data_ptr<float>(), folded.data_ptr(), stream_of(images)),
             "folding pixels");
  return folded;
}

}  // namespace tutti
