#include "train/frozen_parameters.h"

#include <gtest/gtest.h>

#include "model/example_batch.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::shared_ptr<Model> small_resnet() {
  ModelOptions options;
  options.data = {SampleKind::images, {3, 32, 32}, 7};
  return make_model("resnet18", options);
}

std::vector<std::string> trained(const Model& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters())
    if (parameter.value().requires_grad()) names.push_back(parameter.key());
  return names;
}

std::string refusal(const std::string& patterns) {
  const auto model = small_resnet();
  try {
    FrozenParameters(*model, patterns);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(FrozenParameters, AreNamedByPatternsAndByPartsOfTheModel) {
  const auto model = small_resnet();
  const FrozenParameters frozen(*model, "conv1,bn?,layer[123],layer4.0.*,layer4.1");
  EXPECT_EQ(trained(*model), (std::vector<std::string>{"fc.weight", "fc.bias"}));
  EXPECT_EQ(frozen.summary(), "60 of 62 tensors are frozen, 11.18 of 11.18 million parameters");
  EXPECT_EQ(FrozenParameters(*small_resnet(), "").summary(), "");
}

TEST(FrozenParameters, AreRefusedWhereNothingFitsOrNothingIsLeft) {
  EXPECT_NE(refusal("layr1").find("'layr1' is no parameter of model 'resnet18'; did you mean 'layer1'?"),
            std::string::npos)
      << refusal("layr1");
  EXPECT_NE(refusal("layer1,xyz").find("Its parts: bn1, conv1, fc, layer1"), std::string::npos) << refusal("xyz");
  EXPECT_NE(refusal("*").find("leaves nothing of model 'resnet18' to train: leave out its last layer, 'fc'"),
            std::string::npos)
      << refusal("*");
}

TEST(FrozenParameters, KeepTheAveragesOfTheirBatchNormalization) {
  const auto model = small_resnet();
  const FrozenParameters frozen(*model, "conv1,bn1,layer1,layer2.0.bn1.weight");
  frozen.enter_training(*model);
  const auto buffers = [&](const std::string& name) { return model->named_buffers()[name].clone(); };
  const torch::Tensor still = buffers("layer1.0.bn1.running_mean"), moving = buffers("layer2.0.bn1.running_mean");
  model->loss(example_batch({SampleKind::images, {3, 32, 32}, 7}, 4)).backward();
  EXPECT_TRUE(torch::equal(buffers("layer1.0.bn1.running_mean"), still));
  EXPECT_EQ(buffers("layer1.0.bn1.num_batches_tracked").item<int64_t>(), 0);
  EXPECT_FALSE(torch::equal(buffers("layer2.0.bn1.running_mean"), moving)) << "its bias is trained";
  EXPECT_EQ(buffers("layer2.0.bn1.num_batches_tracked").item<int64_t>(), 1);
  EXPECT_FALSE(model->named_parameters()["layer1.0.bn1.weight"].grad().defined());
  EXPECT_TRUE(model->named_parameters()["fc.weight"].grad().defined());
}

}  // namespace
}  // namespace tutti
