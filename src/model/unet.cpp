// U-Net (Ronneberger et al., 2015) as in milesial's Pytorch-UNet, whose names it has: convolutions keep the size, batch
// normalization after each, transposed convolutions on the way up. The loss is binary cross-entropy plus 1 - Dice.

#include <torch/nn/modules/conv.h>

#include <algorithm>

#include "model/layers.h"
#include "model/ops/batch_norm.h"
#include "model/ops/checkpoint.h"
#include "model/ops/max_pool.h"
#include "model/ops/up_beside.h"
#include "model/zoo.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kUnet = "unet";
constexpr int64_t kUnetWidth = 64;
constexpr int64_t kDepth = 4;
constexpr int64_t kDeepest = 8;

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;

/// Twice: convolution, batch normalization, relu.
class DoubleConv : public torch::nn::Module {
 public:
  DoubleConv(int64_t inputs, int64_t outputs) {
    const auto steps = add_folder(*this, "double_conv");
    const auto make_conv = [](int64_t from, int64_t to) {
      return Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1).bias(false));
    };
    conv1_ = steps->register_module("0", make_conv(inputs, outputs));
    norm1_ = steps->register_module("1", BatchNorm2d(outputs));
    conv2_ = steps->register_module("3", make_conv(outputs, outputs));
    norm2_ = steps->register_module("4", BatchNorm2d(outputs));
  }
  TwoUses forward(const torch::Tensor& input) {
    const torch::Tensor x = batch_norm_relu(torch::conv2d(input, conv1_->weight, {}, 1, 1), norm1_);
    return batch_norm_relu_for_two(torch::conv2d(x, conv2_->weight, {}, 1, 1), norm2_);
  }

 private:
  Conv2d conv1_{nullptr}, conv2_{nullptr};
  BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
};

/// Half the size, then a DoubleConv.
class Down : public torch::nn::Module {
 public:
  Down(int64_t inputs, int64_t outputs)
      : conv_(add_folder(*this, "maxpool_conv")->register_module("1", std::make_shared<DoubleConv>(inputs, outputs))) {}
  TwoUses forward(const torch::Tensor& x) { return conv_->forward(max_pool(x, 2, 2)); }

 private:
  std::shared_ptr<DoubleConv> conv_;
};

/// Twice the size and half the channels, beside what came across at this level, then a DoubleConv.
class Up : public torch::nn::Module {
 public:
  Up(int64_t inputs, int64_t outputs)
      : up_(register_module(
            "up", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(inputs, inputs / 2, 2).stride(2)))),
        conv_(register_module("conv", std::make_shared<DoubleConv>(inputs, outputs))) {}
  torch::Tensor forward(const torch::Tensor& below, const torch::Tensor& across) {
    return conv_->forward(up_beside(across, below, up_->weight, up_->bias)).first;
  }

 private:
  torch::nn::ConvTranspose2d up_;
  std::shared_ptr<DoubleConv> conv_;
};

class UNet : public Model {
 public:
  UNet(const SampleTraits& data, int64_t width, int64_t depth, bool checkpoints)
      : Model(kUnet),
        checkpoints_(checkpoints),
        inc_(register_module("inc", std::make_shared<DoubleConv>(data.shape[0], width))) {
    for (int64_t level = 0; level < depth; ++level)
      downs_.push_back(register_module("down" + std::to_string(level + 1),
                                       std::make_shared<Down>(width << level, width << (level + 1))));
    for (int64_t level = depth; level > 0; --level)
      ups_.push_back(register_module("up" + std::to_string(depth - level + 1),
                                     std::make_shared<Up>(width << level, width << (level - 1))));
    outc_ = add_folder(*this, "outc")->register_module("conv", Conv2d(torch::nn::Conv2dOptions(width, 1, 1)));
    counter_ = std::make_unique<BatchCounter>(*this);
  }

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return {logits(batch)}; }
  torch::Tensor loss(const Batch& batch) override { return losses(logits(batch), batch.target).mean(); }
  EvalSums count(const Batch& batch) override {
    const torch::Tensor scores = logits(batch);
    return count_pixels(scores, batch.target, losses(scores, batch.target));
  }
  bool prefers_channels_last() const override { return true; }

 private:
  /// Of each image, so that the loss of a batch does not depend on how it is split.
  static torch::Tensor losses(const torch::Tensor& scores, const torch::Tensor& target) {
    constexpr double kSmooth = 1;  // pixel: an image without a single one is then no special case
    const torch::Tensor logits = scores.to(torch::kFloat);
    const torch::Tensor crossentropy =
        torch::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::None).mean({1, 2, 3});
    const torch::Tensor found = torch::sigmoid(logits);
    const torch::Tensor both = (found * target).sum({1, 2, 3});
    const torch::Tensor sum = found.sum({1, 2, 3}) + target.sum({1, 2, 3});
    return crossentropy + 1 - (2 * both + kSmooth) / (sum + kSmooth);
  }

  /// A level on the way down: what goes further down, and what goes across.
  TwoUses run_down(const BlockForTwo& level, const torch::Tensor& input) const {
    return checkpoints_ ? checkpoint_for_two(level, {input}) : level({input});
  }

  torch::Tensor logits(const Batch& batch) {
    if (is_training()) counter_->count();
    using Tensors = std::vector<torch::Tensor>;
    std::vector<TwoUses> levels{
        run_down([inc = inc_](const Tensors& in) { return inc->forward(in[0]); }, batch.inputs[0])};
    for (const auto& down : downs_)
      levels.push_back(run_down([down](const Tensors& in) { return down->forward(in[0]); }, levels.back().first));
    torch::Tensor x = levels.back().first;
    for (const auto& up : ups_) {
      levels.pop_back();
      const Block level = [up](const Tensors& in) { return up->forward(in[0], in[1]); };
      const Tensors inputs{x, levels.back().second};
      x = checkpoints_ ? checkpoint(level, inputs) : level(inputs);
    }
    return torch::conv2d(x, outc_->weight, outc_->bias);
  }

  bool checkpoints_;
  std::shared_ptr<DoubleConv> inc_;
  std::vector<std::shared_ptr<Down>> downs_;
  std::vector<std::shared_ptr<Up>> ups_;
  Conv2d outc_{nullptr};
  std::unique_ptr<BatchCounter> counter_;
};

}  // namespace

std::shared_ptr<Model> make_unet(const ModelOptions& options) {
  const int64_t width = options.width > 0 ? options.width : kUnetWidth;
  const int64_t depth = options.depth > 0 ? options.depth : kDepth;
  if (depth > kDeepest) throw UsageError("--depth {}: model '{}' has at most {} levels", depth, kUnet, kDeepest);
  const int64_t side = std::min(options.data.shape[1], options.data.shape[2]);
  if (side < int64_t{1} << depth)
    refuse_data(kUnet, options,
                fmt::format("{} levels halve it to nothing; images need {} pixels a side, or choose a smaller --depth",
                            depth, int64_t{1} << depth));
  return std::make_shared<UNet>(options.data, width, depth, options.checkpoint_activations);
}

}  // namespace tutti
