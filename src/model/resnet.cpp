// Residual networks (He et al., "Deep Residual Learning for Image Recognition", 2015) as torchvision has them: names,
// numbers and initial weights. As there, the 3×3 convolution of a bottleneck has the stride ("version 1.5").

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cmath>

#include "model/layers.h"
#include "model/ops/batch_norm.h"
#include "model/ops/linear.h"
#include "model/ops/max_pool.h"
#include "model/ops/stem_conv.h"
#include "model/zoo.h"

namespace tutti {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;

Conv2d make_conv(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  return Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// conv2d without what torch::nn adds for other kinds of padding.
torch::Tensor convolve(const torch::Tensor& x, const Conv2d& conv) {
  const int64_t padding = conv->options.kernel_size()->at(0) / 2;
  return torch::conv2d(x, conv->weight, {}, conv->options.stride(), padding);
}

/// Convolutions with batch normalization, and a shortcut around them.
class ResidualBlock : public torch::nn::Module {
 public:
  /// `kernels` of the convolutions in order; the first 3×3 one has the stride, the last one gives `outputs` channels.
  ResidualBlock(const std::vector<int64_t>& kernels, int64_t inputs, int64_t width, int64_t outputs, int64_t stride) {
    int64_t channels = inputs;
    bool has_strided = false;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const bool strides = kernels[i] == 3 && !has_strided;
      has_strided = has_strided || strides;
      const int64_t to = i + 1 == kernels.size() ? outputs : width;
      const std::string number = std::to_string(i + 1);
      convs_.push_back(register_module("conv" + number, make_conv(channels, to, kernels[i], strides ? stride : 1)));
      norms_.push_back(register_module("bn" + number, BatchNorm2d(to)));
      channels = to;
    }
    if (stride == 1 && inputs == outputs) return;
    const auto downsample = add_folder(*this, "downsample");
    shortcut_conv_ = downsample->register_module("0", make_conv(inputs, outputs, 1, stride));
    shortcut_norm_ = downsample->register_module("1", BatchNorm2d(outputs));
  }

  TwoUses forward(const TwoUses& input) {
    torch::Tensor x = input.first;
    for (std::size_t i = 0; i + 1 < convs_.size(); ++i) x = batch_norm_relu(convolve(x, convs_[i]), norms_[i]);
    x = convolve(x, convs_.back());
    const torch::Tensor shortcut =
        shortcut_conv_.is_empty() ? input.second : batch_norm(convolve(input.second, shortcut_conv_), shortcut_norm_);
    return batch_norm_add_relu_for_two(x, norms_.back(), shortcut);
  }

 private:
  std::vector<Conv2d> convs_;
  std::vector<BatchNorm2d> norms_;
  Conv2d shortcut_conv_{nullptr};
  BatchNorm2d shortcut_norm_{nullptr};
};

/// Blocks per stage, the kernels of a block, and how many times a stage's width a block puts out.
struct Design {
  std::array<int, 4> blocks;
  std::vector<int64_t> kernels;
  int64_t expansion;
};

class ResNet : public Model {
 public:
  ResNet(const std::string& name, const Design& design, const SampleTraits& data)
      : Model(name),
        conv1_(register_module("conv1", make_conv(data.shape[0], 64, 7, 2))),
        bn1_(register_module("bn1", BatchNorm2d(64))) {
    int64_t channels = 64;
    for (std::size_t stage = 0; stage < design.blocks.size(); ++stage) {
      const auto layer = add_folder(*this, "layer" + std::to_string(stage + 1));
      const int64_t width = int64_t{64} << stage, outputs = width * design.expansion;
      for (int i = 0; i < design.blocks[stage]; ++i) {
        const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
        blocks_.push_back(layer->register_module(
            std::to_string(i), std::make_shared<ResidualBlock>(design.kernels, channels, width, outputs, stride)));
        channels = outputs;
      }
    }
    fc_ = register_module("fc", torch::nn::Linear(channels, data.classes));
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& weight : parameters()) {
      if (weight.dim() != 4) continue;
      const int64_t fan_out = weight.numel() / weight.size(1);
      weight.normal_(0, std::sqrt(2.0 / static_cast<double>(fan_out)));
    }
    counter_ = std::make_unique<BatchCounter>(*this);
  }

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return {logits(batch)}; }
  torch::Tensor loss(const Batch& batch) override { return torch::cross_entropy_loss(logits(batch), batch.target); }
  EvalSums count(const Batch& batch) override { return count_classes(logits(batch), batch.target); }
  bool prefers_channels_last() const override { return true; }

 private:
  torch::Tensor logits(const Batch& batch) {
    if (is_training()) counter_->count();
    torch::Tensor x = batch_norm_relu(stem_conv(batch.inputs[0], conv1_->weight), bn1_);
    x = max_pool(x, 3, 2, 1);
    TwoUses both{x, x};
    for (const auto& block : blocks_) both = block->forward(both);
    return linear(both.first.mean({2, 3}), fc_->weight, fc_->bias);
  }

  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Linear fc_{nullptr};
  std::unique_ptr<BatchCounter> counter_;
};

}  // namespace

std::shared_ptr<Model> make_resnet18(const ModelOptions& options) {
  return std::make_shared<ResNet>("resnet18", Design{{2, 2, 2, 2}, {3, 3}, 1}, options.data);
}

std::shared_ptr<Model> make_resnet50(const ModelOptions& options) {
  return std::make_shared<ResNet>("resnet50", Design{{3, 4, 6, 3}, {1, 3, 1}, 4}, options.data);
}

std::shared_ptr<Model> make_resnet101(const ModelOptions& options) {
  return std::make_shared<ResNet>("resnet101", Design{{3, 4, 23, 3}, {1, 3, 1}, 4}, options.data);
}

}  // namespace tutti
