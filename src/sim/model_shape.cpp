#include "sim/model_shape.h"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {
namespace {

LayerShape convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t kernel, int64_t side) {
  const int64_t weights = inputs * outputs * kernel * kernel;
  return {name, {{name + ".weight", weights}}, 2.0 * static_cast<double>(weights * side * side), 0, true};
}

/// With a bias, and ReLU or the like behind it: that many passes over what it puts out.
LayerShape biased(LayerShape layer, int64_t outputs, int64_t side, double passes) {
  layer.parameters.emplace_back(layer.name + ".bias", outputs);
  layer.traffic += passes * static_cast<double>(outputs * side * side);
  return layer;
}

/// Batch normalization reads its input twice and writes once; what follows (ReLU, an addition) reads and writes again.
LayerShape batch_norm(const std::string& name, int64_t channels, int64_t side) {
  return {name,
          {{name + ".weight", channels}, {name + ".bias", channels}},
          0,
          5.0 * static_cast<double>(channels * side * side)};
}

LayerShape linear(const std::string& name, int64_t inputs, int64_t outputs, int64_t rows, double passes = 1) {
  return {name,
          {{name + ".weight", inputs * outputs}, {name + ".bias", outputs}},
          2.0 * static_cast<double>(inputs * outputs * rows),
          passes * static_cast<double>(outputs * rows)};
}

LayerShape layer_norm(const std::string& name, int64_t width, int64_t rows) {
  return {name,
          {{name + ".weight", width}, {name + ".bias", width}},
          0,
          6.0 * static_cast<double>(width * rows)};  // with the dropout and the addition before it
}

struct ResNetDesign {
  std::vector<int> blocks;
  std::vector<int64_t> kernels;
  int64_t expansion;
};

ModelShape resnet(const std::string& name, const ResNetDesign& design) {
  ModelShape shape{name, {}};
  auto& layers = shape.layers;
  layers.push_back(convolution("conv1", 3, 64, 7, 112));
  layers.push_back(batch_norm("bn1", 64, 112));
  int64_t channels = 64, side = 56;
  for (std::size_t stage = 0; stage < design.blocks.size(); ++stage) {
    const int64_t width = int64_t{64} << stage, outputs = width * design.expansion;
    for (int block = 0; block < design.blocks[stage]; ++block) {
      const std::string prefix = "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
      const bool strides = block == 0 && stage > 0;
      const int64_t block_inputs = channels;
      int64_t at = side;
      bool has_strided = false;
      for (std::size_t i = 0; i < design.kernels.size(); ++i) {
        if (strides && design.kernels[i] == 3 && !has_strided) {
          at /= 2;
          has_strided = true;
        }
        const int64_t to = i + 1 == design.kernels.size() ? outputs : width;
        const std::string conv = fmt::format("{}conv{}", prefix, i + 1), norm = fmt::format("{}bn{}", prefix, i + 1);
        layers.push_back(convolution(conv, channels, to, design.kernels[i], at));
        layers.push_back(batch_norm(norm, to, at));
        channels = to;
      }
      side = at;
      if (!strides && block_inputs == outputs) continue;
      layers.push_back(convolution(prefix + "downsample.0", block_inputs, outputs, 1, side));
      layers.push_back(batch_norm(prefix + "downsample.1", outputs, side));
    }
  }
  layers.push_back(linear("fc", channels, 1000, 1));
  return shape;
}

ModelShape bert(const std::string& name, int64_t width, int depth, const ShapeOptions& options) {
  constexpr int64_t kVocabulary = 30522, kMostTokens = 512, kMaskedOf64 = 10;
  const int64_t tokens = options.tokens > 0 ? options.tokens : 64;
  const int64_t decoded = options.decodes_all_tokens ? tokens : tokens * kMaskedOf64 / 64;
  ModelShape shape{name, {}};
  auto& layers = shape.layers;
  // The decoder of words is the embedding of words: its gradient is complete when backward has reached the embeddings.
  layers.push_back({"bert.embeddings",
                    {{"bert.embeddings.word_embeddings.weight", kVocabulary * width},
                     {"bert.embeddings.position_embeddings.weight", kMostTokens * width},
                     {"bert.embeddings.token_type_embeddings.weight", 2 * width}},
                    0,
                    4.0 * static_cast<double>(tokens * width)});
  layers.push_back(layer_norm("bert.embeddings.LayerNorm", width, tokens));
  for (int i = 0; i < depth; ++i) {
    const std::string prefix = "bert.encoder.layer." + std::to_string(i) + ".";
    for (const char* part : {"query", "key", "value"})
      layers.push_back(linear(prefix + "attention.self." + part, width, width, tokens, 2));
    // Scores and mixtures of the heads; softmax and dropout pass over tokens × tokens values per head of 64.
    LayerShape mixture = linear(prefix + "attention.output.dense", width, width, tokens, 2);
    mixture.flop += 4.0 * static_cast<double>(tokens * tokens * width);
    mixture.traffic += 7.0 * static_cast<double>(tokens * tokens) * static_cast<double>(width) / 64;
    layers.push_back(mixture);
    layers.push_back(layer_norm(prefix + "attention.output.LayerNorm", width, tokens));
    layers.push_back(linear(prefix + "intermediate.dense", width, 4 * width, tokens, 3));
    layers.push_back(linear(prefix + "output.dense", 4 * width, width, tokens));
    layers.push_back(layer_norm(prefix + "output.LayerNorm", width, tokens));
  }
  layers.push_back(linear("bert.pooler.dense", width, width, 1));
  layers.push_back(linear("cls.predictions.transform.dense", width, width, decoded, 3));
  layers.push_back(layer_norm("cls.predictions.transform.LayerNorm", width, decoded));
  layers.push_back({"cls.predictions",
                    {{"cls.predictions.bias", kVocabulary}},
                    2.0 * static_cast<double>(decoded * width * kVocabulary),
                    5.0 * static_cast<double>(decoded * kVocabulary)});
  layers.push_back(linear("cls.seq_relationship", width, 2, 1));
  return shape;
}

ModelShape mnist_cnn() {
  constexpr int64_t kSide = 28, kChannels = 64, kHidden = 128, kClasses = 10;
  constexpr int64_t kPooled = (kSide - 4) / 2;  // two convolutions without padding, then a maximum of 2×2
  ModelShape shape{"mnist-cnn", {}};
  shape.layers.push_back(biased(convolution("conv1", 1, 32, 3, kSide - 2), 32, kSide - 2, 3));
  shape.layers.push_back(biased(convolution("conv2", 32, kChannels, 3, kSide - 4), kChannels, kSide - 4, 5));
  shape.layers.push_back(linear("fc1", kChannels * kPooled * kPooled, kHidden, 1, 5));
  shape.layers.push_back(linear("fc2", kHidden, kClasses, 1));
  return shape;
}

ModelShape mlp() {
  constexpr int64_t kFeatures = 64, kWidth = 256, kClasses = 10;
  constexpr int kHiddenLayers = 2;
  ModelShape shape{"mlp", {}};
  int64_t inputs = kFeatures;
  for (int i = 1; i <= kHiddenLayers; ++i, inputs = kWidth)
    shape.layers.push_back(linear(fmt::format("fc{}", i), inputs, kWidth, 1, 5));
  shape.layers.push_back(linear(fmt::format("fc{}", kHiddenLayers + 1), inputs, kClasses, 1));
  return shape;
}

/// Twice: a convolution that keeps the size, batch normalization, ReLU.
void add_double_convolution(std::vector<LayerShape>& layers, const std::string& name, int64_t inputs, int64_t outputs,
                            int64_t side) {
  const std::string prefix = name + ".double_conv.";
  layers.push_back(convolution(prefix + "0", inputs, outputs, 3, side));
  layers.push_back(batch_norm(prefix + "1", outputs, side));
  layers.push_back(convolution(prefix + "3", outputs, outputs, 3, side));
  layers.push_back(batch_norm(prefix + "4", outputs, side));
}

ModelShape unet() {
  constexpr int64_t kWidth = 64;
  constexpr int kDepth = 4;
  ModelShape shape{"unet", {}};
  auto& layers = shape.layers;
  int64_t side = 256, channels = kWidth;
  add_double_convolution(layers, "inc", 3, kWidth, side);
  for (int level = 1; level <= kDepth; ++level) {
    const std::size_t first = layers.size();
    add_double_convolution(layers, fmt::format("down{}.maxpool_conv.1", level), channels, 2 * channels, side / 2);
    layers[first].traffic += 1.25 * static_cast<double>(channels * side * side);  // the maximum of 2×2 before it
    channels *= 2;
    side /= 2;
  }
  for (int level = 1; level <= kDepth; ++level) {
    const std::string name = fmt::format("up{}", level);
    // Transposed: its kernel is applied at each place of the smaller image. What comes across is copied beside it.
    layers.push_back(biased(convolution(name + ".up", channels, channels / 2, 2, side), channels / 2, 2 * side, 6));
    side *= 2;
    add_double_convolution(layers, name + ".conv", channels, channels / 2, side);
    channels /= 2;
  }
  layers.push_back(biased(convolution("outc.conv", channels, 1, 1, side), 1, side, 8));  // and the loss, per pixel
  return shape;
}

ModelShape transformer(const ShapeOptions& options) {
  constexpr int64_t kVocabulary = 20000, kWidth = 256, kClasses = 5;
  constexpr int kDepth = 6;
  const int64_t tokens = options.tokens > 0 ? options.tokens : 256;
  ModelShape shape{"transformer", {}};
  auto& layers = shape.layers;
  layers.push_back({"embedding",
                    {{"embedding.weight", kVocabulary * kWidth}, {"positions.weight", tokens * kWidth}},
                    0,
                    4.0 * static_cast<double>(tokens * kWidth)});
  for (int i = 0; i < kDepth; ++i) {
    const std::string prefix = "encoder.layers." + std::to_string(i) + ".";
    LayerShape in = linear(prefix + "self_attn.in_proj", kWidth, 3 * kWidth, tokens, 2);
    in.parameters = {{prefix + "self_attn.in_proj_weight", 3 * kWidth * kWidth},
                     {prefix + "self_attn.in_proj_bias", 3 * kWidth}};
    layers.push_back(in);
    LayerShape mixture = linear(prefix + "self_attn.out_proj", kWidth, kWidth, tokens, 2);
    mixture.flop += 4.0 * static_cast<double>(tokens * tokens * kWidth);
    mixture.traffic += 7.0 * static_cast<double>(tokens * tokens * kWidth) / 64;
    layers.push_back(mixture);
    layers.push_back(layer_norm(prefix + "norm1", kWidth, tokens));
    layers.push_back(linear(prefix + "linear1", kWidth, 4 * kWidth, tokens, 3));
    layers.push_back(linear(prefix + "linear2", 4 * kWidth, kWidth, tokens));
    layers.push_back(layer_norm(prefix + "norm2", kWidth, tokens));
  }
  layers.push_back(linear("classifier", kWidth, kClasses, 1));
  return shape;
}

using Maker = std::function<ModelShape(const ShapeOptions&)>;

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> table = {
      {"bert-base", [](const ShapeOptions& options) { return bert("bert-base", 768, 12, options); }},
      {"bert-large", [](const ShapeOptions& options) { return bert("bert-large", 1024, 24, options); }},
      {"mlp", [](const ShapeOptions&) { return mlp(); }},
      {"mnist-cnn", [](const ShapeOptions&) { return mnist_cnn(); }},
      {"resnet101",
       [](const ShapeOptions&) {
         return resnet("resnet101", {{3, 4, 23, 3}, {1, 3, 1}, 4});
       }},
      {"resnet18",
       [](const ShapeOptions&) {
         return resnet("resnet18", {{2, 2, 2, 2}, {3, 3}, 1});
       }},
      {"resnet50",
       [](const ShapeOptions&) {
         return resnet("resnet50", {{3, 4, 6, 3}, {1, 3, 1}, 4});
       }},
      {"transformer", transformer},
      {"unet", [](const ShapeOptions&) { return unet(); }},
  };
  return table;
}

}  // namespace

int64_t ModelShape::parameters() const {
  int64_t sum = 0;
  for (const LayerShape& layer : layers)
    for (const auto& parameter : layer.parameters) sum += parameter.second;
  return sum;
}

int64_t ModelShape::tensors() const {
  std::size_t count = 0;
  for (const LayerShape& layer : layers) count += layer.parameters.size();
  return static_cast<int64_t>(count);
}

double ModelShape::flop() const {
  double sum = 0;
  for (const LayerShape& layer : layers) sum += layer.flop;
  return sum;
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const auto& maker : makers()) names.push_back(maker.first);
  return names;
}

ModelShape model_shape(const std::string& name, const ShapeOptions& options) {
  const auto found = makers().find(name);
  if (found == makers().end()) throw UsageError(unknown_name("model", name, shape_names()));
  return found->second(options);
}

}  // namespace tutti
