// A Transformer encoder (Vaswani et al., "Attention Is All You Need", 2017) that classifies sentences by the mean over
// their tokens. Names and initial weights as in torch.nn.TransformerEncoder, with normalization after each part.

#include <cmath>
#include <utility>

#include "model/layers.h"
#include "model/ops/add_norm.h"
#include "model/ops/attention.h"
#include "model/ops/checkpoint.h"
#include "model/ops/dropout.h"
#include "model/ops/linear.h"
#include "model/zoo.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kTransformer = "transformer";
constexpr int64_t kTransformerWidth = 256;
constexpr int64_t kLayers = 6;
constexpr int64_t kHeadSize = 64;
constexpr int64_t kFeedForward = 4;  // times the width
constexpr double kDropout = 0.1;
constexpr double kEpsilon = 1e-5;

/// torch.nn.Linear's.
void initialize(const Dense& dense) {
  const double bound = 1 / std::sqrt(static_cast<double>(dense.weight.size(1)));
  dense.weight.uniform_(-bound, bound);
  dense.bias.uniform_(-bound, bound);
}

class SelfAttention : public torch::nn::Module {
 public:
  explicit SelfAttention(int64_t width)
      : width_(width),
        in_weight_(register_parameter("in_proj_weight", torch::empty({3 * width, width}))),
        in_bias_(register_parameter("in_proj_bias", torch::zeros({3 * width}))),
        out_proj_(register_module("out_proj", std::make_shared<Dense>(width, width))) {
    const torch::NoGradGuard no_grad;
    const double bound = std::sqrt(6.0 / static_cast<double>(4 * width));  // Xavier's
    in_weight_.uniform_(-bound, bound);
    initialize(*out_proj_);
    out_proj_->bias.zero_();
  }
  /// All but the output projection, and the input for whatever else reads it.
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x, const torch::Tensor& bias) {
    const Projections in = projections(x, {in_weight_}, {in_bias_});
    const auto parts = in.outputs[0].chunk(3, -1);
    const double share = is_training() ? kDropout : 0;
    return {attention(parts[0], parts[1], parts[2], width_ / kHeadSize, bias, share), in.input};
  }
  const Dense& output() const { return *out_proj_; }

 private:
  int64_t width_;
  torch::Tensor in_weight_, in_bias_;
  std::shared_ptr<Dense> out_proj_;
};

class EncoderLayer : public torch::nn::Module {
 public:
  explicit EncoderLayer(int64_t width)
      : attention_(register_module("self_attn", std::make_shared<SelfAttention>(width))),
        linear1_(register_module("linear1", std::make_shared<Dense>(width, kFeedForward * width))),
        linear2_(register_module("linear2", std::make_shared<Dense>(kFeedForward * width, width))),
        norm1_(register_module("norm1", std::make_shared<LayerNorm>(width, kEpsilon))),
        norm2_(register_module("norm2", std::make_shared<LayerNorm>(width, kEpsilon))) {
    const torch::NoGradGuard no_grad;
    initialize(*linear1_);
    initialize(*linear2_);
  }
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& bias) {
    const double share = is_training() ? kDropout : 0;
    const auto [mixed, same] = attention_->forward(input, bias);
    const torch::Tensor x = add_norm(mixed, attention_->output(), same, share, *norm1_);
    return relu_feed_forward(x, *linear1_, *linear2_, share, *norm2_);
  }

 private:
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Dense> linear1_, linear2_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
};

class Transformer : public Model {
 public:
  Transformer(const SampleTraits& data, int64_t width, int64_t layers, bool checkpoints)
      : Model(kTransformer),
        checkpoints_(checkpoints),
        embedding_(register_module("embedding", std::make_shared<Embedding>(data.vocabulary, width))),
        positions_(register_module("positions", std::make_shared<Embedding>(data.shape[0], width))) {
    const auto list = add_folder(*add_folder(*this, "encoder"), "layers");
    for (int64_t i = 0; i < layers; ++i)
      layers_.push_back(list->register_module(std::to_string(i), std::make_shared<EncoderLayer>(width)));
    classifier_ = register_module("classifier", std::make_shared<Dense>(width, data.classes));
    const torch::NoGradGuard no_grad;
    embedding_->weight.normal_(0, 1);
    positions_->weight.normal_(0, 0.02);
    initialize(*classifier_);
  }

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return {logits(batch)}; }
  torch::Tensor loss(const Batch& batch) override { return torch::cross_entropy_loss(logits(batch), batch.target); }
  EvalSums count(const Batch& batch) override { return count_classes(logits(batch), batch.target); }

 private:
  torch::Tensor logits(const Batch& batch) {
    const torch::Tensor& tokens = batch.inputs[0];
    const torch::Tensor is_token = tokens.ne(0);
    const torch::Tensor bias = padding_bias(is_token);
    torch::Tensor x = (*embedding_)(tokens) + positions_->weight.slice(0, 0, tokens.size(1));
    if (is_training()) x = dropout(x, kDropout);
    for (const auto& layer : layers_) {
      const Block block = [layer](const std::vector<torch::Tensor>& in) { return layer->forward(in[0], in[1]); };
      x = checkpoints_ ? checkpoint(block, {x, bias}) : block({x, bias});
    }
    const torch::Tensor weights = is_token.to(x.scalar_type()).unsqueeze(-1);
    const torch::Tensor mean = (x * weights).sum(1) / weights.sum(1).clamp_min(1);
    return (*classifier_)(mean);
  }

  bool checkpoints_;
  std::shared_ptr<Embedding> embedding_, positions_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::shared_ptr<Dense> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_transformer(const ModelOptions& options) {
  const int64_t width = options.width > 0 ? options.width : kTransformerWidth;
  if (width % kHeadSize != 0)
    throw UsageError("--width {}: model '{}' takes multiples of {}, the size of a head", width, kTransformer,
                     kHeadSize);
  return std::make_shared<Transformer>(options.data, width, options.depth > 0 ? options.depth : kLayers,
                                       options.checkpoint_activations);
}

}  // namespace tutti
