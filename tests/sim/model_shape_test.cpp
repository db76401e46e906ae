#include "sim/model_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/computed_profile.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct Known {
  const char* name;
  int64_t parameters, tensors;
  double gflop;
};

// What `tutti models` prints, which runs the real models.
class ModelShapes : public ::testing::TestWithParam<Known> {};

TEST_P(ModelShapes, HaveTheParametersAndOperationsOfTheModels) {
  const ModelShape shape = model_shape(GetParam().name);
  EXPECT_EQ(shape.parameters(), GetParam().parameters);
  EXPECT_EQ(shape.tensors(), GetParam().tensors);
  EXPECT_NEAR(shape.flop() * 1e-9, GetParam().gflop, 0.0006);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ModelShapes,
    ::testing::Values(Known{"mnist-cnn", 1'199'882, 8, 0.024}, Known{"unet", 31'037'633, 64, 96.335},
                      Known{"resnet18", 11'689'512, 62, 3.628}, Known{"resnet50", 25'557'032, 161, 8.178},
                      Known{"resnet101", 44'549'160, 314, 15.603}, Known{"transformer", 9'925'381, 76, 2.819},
                      Known{"bert-base", 110'106'428, 206, 11.504}, Known{"bert-large", 336'226'108, 398, 39.706}));

TEST(ModelShape, NamesTheModelsWhenOneIsUnknown) {
  try {
    model_shape("bert-bsae");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("bert-base"), std::string::npos) << error.what();
  }
}

TEST(ComputedProfile, HasGradientsInTheReverseOfForward) {
  const Profile profile = compute_profile(model_shape("bert-base"), Device{"device", 10e12, 500e9}, 8);
  ASSERT_EQ(profile.gradients.size(), 206u);
  EXPECT_EQ(profile.gradients.back().name, "bert.embeddings.word_embeddings.weight");
  EXPECT_DOUBLE_EQ(profile.gradients.back().ready_s, profile.backward_s);
  EXPECT_DOUBLE_EQ(profile.gradients.back().needed_s, 0);
  EXPECT_NEAR(profile.backward_s, 2 * profile.forward_s, 1e-12);
  std::set<int> parameters;
  for (std::size_t i = 0; i < profile.gradients.size(); ++i) {
    parameters.insert(profile.gradients[i].parameter);
    const double before_s = i > 0 ? profile.gradients[i - 1].ready_s : 0;
    EXPECT_GE(profile.gradients[i].ready_s, before_s);
  }
  EXPECT_EQ(parameters.size(), 206u);
}

TEST(ComputedProfile, TakesAsLongAsProductsAndPassesDo) {
  const ModelShape shape{"one", {{"dense", {{"w", 100}}, 1e9, 1e6}}};
  Device device{"device", 10e12, 500e9};
  device.efficiency = 0.5;
  device.memory_efficiency = 0.5;
  const double forward_s = 16 * 1e9 / 5e12 + 16 * 1e6 * 4 / 250e9;
  EXPECT_NEAR(compute_profile(shape, device, 16).forward_s, forward_s, 1e-12);
}

TEST(ComputedProfile, KeepsItsShapeWhenItIsScaled) {
  const Profile profile = compute_profile(model_shape("resnet50"), Device{"device", 10e12, 500e9}, 8);
  const Profile scaled = scaled_to(profile, 2 * (profile.forward_s + profile.backward_s));
  EXPECT_NEAR(scaled.forward_s, 2 * profile.forward_s, 1e-12);
  EXPECT_NEAR(scaled.gradients[7].ready_s, 2 * profile.gradients[7].ready_s, 1e-12);
}

}  // namespace
}  // namespace tutti
