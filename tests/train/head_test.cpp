#include "train/head.h"

#include <gtest/gtest.h>

#include "train/frozen_parameters.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::shared_ptr<Model> model_for_head() {
  ModelOptions options;
  options.data = {SampleKind::images, {3, 32, 32}, 7};
  return make_model("resnet18", options);
}

TEST(Head, IsTheLastLayerInAGroupOfItsOwn) {
  const auto model = model_for_head();
  EXPECT_EQ(last_layer_of(*model), "fc");
  std::vector<std::string> head;
  for (const NamedTensor& parameter : tensors_with_head(*model).parameters)
    if (parameter.group == 1) head.push_back(parameter.name);
  EXPECT_EQ(head, (std::vector<std::string>{"fc.weight", "fc.bias"}));
}

TEST(Head, IsRefusedARateOfItsOwnWhereItIsFrozen) {
  const auto model = model_for_head();
  const FrozenParameters frozen(*model, "fc");
  try {
    tensors_with_head(*model);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--head-lr is for the last layer of model 'resnet18', and --freeze leaves 'fc' as it is");
  }
}

}  // namespace
}  // namespace tutti
