// Weights of every model go to a file and come back, whatever their order in memory.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/safetensors.h"
#include "model/model.h"
#include "train/checkpoint.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Model> small(const std::string& name, uint64_t seed) {
  torch::manual_seed(seed);
  ModelOptions options;
  if (name == "unet") options.width = 4;
  if (name == "transformer" || name.rfind("bert", 0) == 0) {
    options.width = 64;
    options.depth = 1;
  }
  return make_model(name, options);
}

class Weights : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { make_folders(folder_); }
  void TearDown() override { remove_tree(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / ("tutti-weights-test-" + std::to_string(::getpid()));
};

void expect_same(const torch::OrderedDict<std::string, torch::Tensor>& a,
                 const torch::OrderedDict<std::string, torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& item : a) EXPECT_TRUE(torch::equal(item.value(), b[item.key()])) << item.key();
}

TEST_P(Weights, ComeBackFromACheckpoint) {
  const auto saved = small(GetParam(), 1), loaded = small(GetParam(), 2);
  if (saved->prefers_channels_last()) {
    use_channels_last(*saved);
    use_channels_last(*loaded);
  }
  CheckpointContent content;
  content.weights = weights_of(*saved);
  content.first_step_samples = 1;
  content.options = {{"model", GetParam()}};
  const fs::path folder = save_checkpoint(folder_, content, {}, 1).folder;
  Checkpoint(folder).load_weights(*loaded);
  expect_same(saved->named_parameters(), loaded->named_parameters());
  expect_same(saved->named_buffers(), loaded->named_buffers());
}

TEST_P(Weights, LieInTheFileRowByRowUnderTheirNames) {
  const auto model = small(GetParam(), 1);
  const auto expected = model->named_parameters();
  if (model->prefers_channels_last()) use_channels_last(*model);
  save_weights(folder_ / "weights.safetensors", *model);
  const SafetensorsFile file(folder_ / "weights.safetensors");
  EXPECT_EQ(file.arrays().size(), model->parameters().size() + model->buffers().size());
  for (const auto& item : expected) {
    const NamedArray* const array = file.find(item.key());
    ASSERT_NE(array, nullptr) << item.key();
    ASSERT_EQ(array->shape, item.value().sizes().vec());
    const torch::Tensor rows = item.value().detach().contiguous();
    EXPECT_EQ(std::memcmp(array->data, rows.data_ptr(), array->bytes), 0) << item.key();
  }
}

TEST_P(Weights, ComeFromAFileThatMayHoldMore) {
  const auto saved = small(GetParam(), 1), loaded = small(GetParam(), 2);
  saved->register_buffer("more", torch::ones({2}));
  save_weights(folder_ / "weights.safetensors", *saved);
  EXPECT_EQ(load_weights(folder_ / "weights.safetensors", *loaded), std::vector<std::string>{"more"});
  expect_same(loaded->named_parameters(), saved->named_parameters());
}

TEST(BertWeights, ComeUnderTheirOldNamesToo) {
  const fs::path path = fs::temp_directory_path() / ("tutti-old-bert-" + std::to_string(::getpid()));
  const auto saved = small("bert-base", 1), loaded = small("bert-base", 2);
  std::vector<NamedArray> arrays;
  for (const auto& item : saved->named_parameters()) {
    std::string name = item.key();
    for (const auto& [now, then] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
      if (const std::size_t at = name.find(now); at != std::string::npos) name = name.substr(0, at) + then;
    const torch::Tensor& tensor = item.value();
    arrays.push_back({name, "F32", tensor.sizes().vec(), tensor.data_ptr(), tensor.nbytes()});
  }
  write_safetensors(path, arrays);
  EXPECT_TRUE(load_weights(path, *loaded).empty());
  expect_same(loaded->named_parameters(), saved->named_parameters());
  fs::remove(path);
}

TEST_P(Weights, OfAnotherModelAreRefused) {
  save_weights(folder_ / "weights.safetensors", *small("resnet50", 1));
  const auto model = small(GetParam(), 2);
  try {
    load_weights(folder_ / "weights.safetensors", *model);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("model '" + GetParam() + "'"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Weights, testing::Values("mnist-cnn", "resnet18", "unet", "transformer", "bert-base"),
                         [](const auto& test) { return test.param.substr(0, 4); });

}  // namespace
}  // namespace tutti
