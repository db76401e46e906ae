// BERT with its two pretraining tasks (Devlin et al., 2018): words that were masked, and whether the second part of the
// text follows the first. Names, numbers and initial weights as in Hugging Face's BertForPreTraining. As there, the
// decoder of words is the embedding of words (cls.predictions.decoder.weight is not a parameter of its own). Unlike
// there, words are decoded only where they were masked: with 30522 words the rest would be most of the work.

#include "model/layers.h"
#include "model/ops/add_norm.h"
#include "model/ops/attention.h"
#include "model/ops/bias_activation.h"
#include "model/ops/checkpoint.h"
#include "model/ops/cross_entropy.h"
#include "model/ops/dropout.h"
#include "model/ops/linear.h"
#include "model/zoo.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kBertHeadSize = 64;
constexpr int64_t kMostTokens = 512;
constexpr double kBertDropout = 0.1;
constexpr double kBertEpsilon = 1e-12;
constexpr double kInitialSpread = 0.02;
constexpr int64_t kNoWord = -100;

template <typename Layer, typename... Arguments>
std::shared_ptr<Layer> add(torch::nn::Module& parent, const std::string& name, Arguments... arguments) {
  return parent.register_module(name, std::make_shared<Layer>(arguments...));
}

class BertEmbeddings : public torch::nn::Module {
 public:
  BertEmbeddings(int64_t vocabulary, int64_t width)
      : words(add<Embedding>(*this, "word_embeddings", vocabulary, width)),
        positions_(add<Embedding>(*this, "position_embeddings", kMostTokens, width)),
        segments_(add<Embedding>(*this, "token_type_embeddings", 2, width)),
        norm_(add<LayerNorm>(*this, "LayerNorm", width, kBertEpsilon)) {}
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& segments) {
    const torch::Tensor x = (*words)(tokens) + (*segments_)(segments) + positions_->weight.slice(0, 0, tokens.size(1));
    const torch::Tensor normal = normalize(x, *norm_);
    return is_training() ? dropout(normal, kBertDropout) : normal;
  }

  std::shared_ptr<Embedding> words;

 private:
  std::shared_ptr<Embedding> positions_, segments_;
  std::shared_ptr<LayerNorm> norm_;
};

class BertLayer : public torch::nn::Module {
 public:
  explicit BertLayer(int64_t width) : heads_(width / kBertHeadSize) {
    const auto attention = add_folder(*this, "attention");
    const auto self = add_folder(*attention, "self");
    query_ = add<Dense>(*self, "query", width, width);
    key_ = add<Dense>(*self, "key", width, width);
    value_ = add<Dense>(*self, "value", width, width);
    const auto attention_output = add_folder(*attention, "output");
    mixed_ = add<Dense>(*attention_output, "dense", width, width);
    mixed_norm_ = add<LayerNorm>(*attention_output, "LayerNorm", width, kBertEpsilon);
    inner_ = add<Dense>(*add_folder(*this, "intermediate"), "dense", width, 4 * width);
    const auto output = add_folder(*this, "output");
    outer_ = add<Dense>(*output, "dense", 4 * width, width);
    outer_norm_ = add<LayerNorm>(*output, "LayerNorm", width, kBertEpsilon);
  }
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& bias) {
    const double share = is_training() ? kBertDropout : 0;
    const Projections in =
        projections(input, {query_->weight, key_->weight, value_->weight}, {query_->bias, key_->bias, value_->bias});
    const torch::Tensor mixed = attention(in.outputs[0], in.outputs[1], in.outputs[2], heads_, bias, share);
    const torch::Tensor x = add_norm(mixed, *mixed_, in.input, share, *mixed_norm_);
    return gelu_feed_forward(x, *inner_, *outer_, share, *outer_norm_);
  }

 private:
  int64_t heads_;
  std::shared_ptr<Dense> query_, key_, value_, mixed_, inner_, outer_;
  std::shared_ptr<LayerNorm> mixed_norm_, outer_norm_;
};

class Bert : public Model {
 public:
  Bert(const std::string& name, const ModelOptions& options, int64_t width, int64_t layers)
      : Model(name), checkpoints_(options.checkpoint_activations) {
    const auto bert = add_folder(*this, "bert");
    embeddings_ = add<BertEmbeddings>(*bert, "embeddings", options.data.vocabulary, width);
    const auto list = add_folder(*add_folder(*bert, "encoder"), "layer");
    for (int64_t i = 0; i < layers; ++i) layers_.push_back(add<BertLayer>(*list, std::to_string(i), width));
    pooler_ = add<Dense>(*add_folder(*bert, "pooler"), "dense", width, width);
    const auto heads = add_folder(*this, "cls");
    const auto predictions = add_folder(*heads, "predictions");
    word_bias_ = predictions->register_parameter("bias", torch::zeros({options.data.vocabulary}));
    const auto transform = add_folder(*predictions, "transform");
    transform_ = add<Dense>(*transform, "dense", width, width);
    transform_norm_ = add<LayerNorm>(*transform, "LayerNorm", width, kBertEpsilon);
    next_ = add<Dense>(*heads, "seq_relationship", width, 2);
    if (options.random_weights) initialize();
  }

  /// Of the words at batch.inputs[3] [n × masked, vocabulary], and of the next sentence [n, 2].
  std::vector<torch::Tensor> outputs(const Batch& batch) override {
    const Features features = forward(batch);
    return {words(features), features.next};
  }

  torch::Tensor loss(const Batch& batch) override {
    const Features features = forward(batch);
    return linear_cross_entropy(features.masked, embeddings_->words->weight, word_bias_, batch.inputs[4].flatten(),
                                kNoWord) +
           torch::cross_entropy_loss(features.next, batch.target);
  }

  EvalSums count(const Batch& batch) override {
    const Features features = forward(batch);
    return count_words(words(features), batch.inputs[4].flatten(), features.next, batch.target);
  }

 private:
  struct Features {
    torch::Tensor masked;  // of masked words [n × masked, width], from which they are decoded
    torch::Tensor next;    // scores of the next sentence [n, 2]
  };

  torch::Tensor words(const Features& features) const {
    return linear(features.masked, embeddings_->words->weight, word_bias_);
  }

  void initialize() {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : named_parameters()) {
      torch::Tensor& tensor = parameter.value();
      if (tensor.dim() == 2)
        tensor.normal_(0, kInitialSpread);
      else if (parameter.key().find("LayerNorm") == std::string::npos)
        tensor.zero_();
    }
    embeddings_->words->weight[0].zero_();  // padding
  }

  Features forward(const Batch& batch) {
    const torch::Tensor &tokens = batch.inputs[0], &positions = batch.inputs[3];
    const torch::Tensor bias = padding_bias(batch.inputs[2]);
    torch::Tensor x = embeddings_->forward(tokens, batch.inputs[1]);
    for (const auto& layer : layers_) {
      const Block block = [layer](const std::vector<torch::Tensor>& in) { return layer->forward(in[0], in[1]); };
      x = checkpoints_ ? checkpoint(block, {x, bias}) : block({x, bias});
    }
    const int64_t n = x.size(0), length = x.size(1);
    const torch::Tensor first_rows = torch::arange(0, n * length, length, positions.options()).unsqueeze(1);
    const torch::Tensor masked = x.flatten(0, 1).index_select(0, (positions + first_rows).flatten());
    const torch::Tensor features = normalize(dense_gelu(masked, *transform_), *transform_norm_);
    const torch::Tensor pooled = torch::tanh((*pooler_)(x.select(1, 0)));
    return {features, (*next_)(pooled)};
  }

  bool checkpoints_;
  std::shared_ptr<BertEmbeddings> embeddings_;
  std::vector<std::shared_ptr<BertLayer>> layers_;
  std::shared_ptr<Dense> pooler_, transform_, next_;
  std::shared_ptr<LayerNorm> transform_norm_;
  torch::Tensor word_bias_;
};

std::shared_ptr<Model> make_bert(const std::string& name, const ModelOptions& options, int64_t width, int64_t layers) {
  if (options.width > 0) width = options.width;
  if (options.depth > 0) layers = options.depth;
  if (width % kBertHeadSize != 0)
    throw UsageError("--width {}: model '{}' takes multiples of {}, the size of a head", width, name, kBertHeadSize);
  if (options.data.shape[0] > kMostTokens)
    refuse_data(name, options, fmt::format("it takes at most {} tokens", kMostTokens));
  return std::make_shared<Bert>(name, options, width, layers);
}

}  // namespace

std::shared_ptr<Model> make_bert_base(const ModelOptions& options) { return make_bert("bert-base", options, 768, 12); }

std::shared_ptr<Model> make_bert_large(const ModelOptions& options) {
  return make_bert("bert-large", options, 1024, 24);
}

}  // namespace tutti
