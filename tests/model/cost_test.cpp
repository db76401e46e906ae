#include "model/cost.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

ModelCost cost_of(const std::string& name, ModelOptions options = ModelOptions()) {
  if (options.data.shape.empty()) options.data = natural_data(name);
  options.random_weights = false;
  return measure_cost(*make_model(name, options), options.data);
}

TEST(Cost, OfResNetsIsWhatTorchvisionStates) {
  // "GFLOPS" in torchvision's tables are multiply-adds: 1.81, 4.09 and 7.80.
  EXPECT_NEAR(static_cast<double>(cost_of("resnet18").forward_flop), 2 * 1.814e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(cost_of("resnet50").forward_flop), 2 * 4.089e9, 0.01e9);
}

TEST(Cost, OfFusedConvolutionsIsThatOfTheirParts) {
  const ModelCost cost = cost_of("mnist-cnn");
  const int64_t conv1 = 26 * 26 * 32 * 9, conv2 = 24 * 24 * 64 * 32 * 9, fc1 = 9216 * 128, fc2 = 128 * 10;
  EXPECT_EQ(cost.forward_flop, 2 * (conv1 + conv2 + fc1 + fc2));
  EXPECT_EQ(cost.parameters, 1'199'882);
  EXPECT_EQ(cost.tensors, 8);
  EXPECT_EQ(cost.gradient_bytes, 4 * 1'199'882);
}

TEST(Cost, OfBertHasLayersAttentionAndWordsAtMaskedPlacesAlone) {
  ModelOptions options;
  options.width = 128;
  options.depth = 3;
  options.data = {SampleKind::masked_text, {64}, 0, 1000, 10};
  const int64_t width = 128, length = 64, masked = 10;
  const int64_t layer = length * 12 * width * width + 2 * length * length * width;
  const int64_t heads = width * width + masked * (width * width + width * 1000) + 2 * width;
  EXPECT_EQ(cost_of("bert-base", options).forward_flop, 2 * (3 * layer + heads));
}

TEST(Cost, OfActivationsGrowsWithDepthAndShrinksWithCheckpoints) {
  ModelOptions options;
  options.width = 64;
  options.depth = 2;
  const int64_t two = cost_of("transformer", options).activation_bytes;
  options.depth = 6;
  const int64_t six = cost_of("transformer", options).activation_bytes;
  options.checkpoint_activations = true;
  const int64_t checkpointed = cost_of("transformer", options).activation_bytes;
  EXPECT_GT(six, 2 * two);
  EXPECT_LT(checkpointed, six / 4);
  // What is kept then: the input of each layer, and little more.
  EXPECT_GT(checkpointed, 6 * 256 * 64 * 4);
}

}  // namespace
}  // namespace tutti
