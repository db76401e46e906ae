// Weights of every model go to a file and come back, whatever their order in memory.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "base/safetensors.h"
#include "model/model.h"
#include "record/record_file.h"
#include "train/checkpoint.h"
#include "train/weights_file.h"
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
  const LoadedWeights weights = load_weights(folder_ / "weights.safetensors", *loaded);
  EXPECT_EQ(weights.unused, std::vector<std::string>{"more"});
  EXPECT_TRUE(weights.left.empty());
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
  const LoadedWeights weights = load_weights(path, *loaded);
  EXPECT_TRUE(weights.unused.empty());
  EXPECT_TRUE(weights.left.empty());
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

/// Writes a model's weights under other names.
void save_renamed(const fs::path& path, const Model& model, const std::function<std::string(std::string)>& rename) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : weights_of(model)) tensors.emplace_back(rename(name), tensor);
  save_weights(path, tensors);
}

std::string refusal(const fs::path& file, Model& model, bool strict = false) {
  try {
    load_weights(file, model, strict);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class FineTuning : public Weights {};

TEST_F(FineTuning, LeavesAHeadAndAStemOfAnotherShapeAsTheyWere) {
  ModelOptions options;
  options.data = {SampleKind::images, {1, 32, 32}, 7};
  const auto saved = small("resnet18", 1), model = make_model("resnet18", options);
  save_weights(folder_ / "weights.safetensors", *saved);
  const torch::Tensor head = model->named_parameters()["fc.weight"].detach().clone();
  EXPECT_NE(refusal(folder_ / "weights.safetensors", *model, /*strict=*/true).find("'conv1.weight' is [64,1,7,7] here"),
            std::string::npos);
  const LoadedWeights weights = load_weights(folder_ / "weights.safetensors", *model);
  EXPECT_EQ(weights.loaded, 122 - 3);
  EXPECT_EQ(weights.left, (std::vector<std::string>{"'conv1.weight' is [64,1,7,7] here and [64,3,7,7] in the file",
                                                    "'fc.weight' is [7,512] here and [1000,512] in the file",
                                                    "'fc.bias' is [7] here and [1000] in the file"}));
  EXPECT_TRUE(torch::equal(model->named_parameters()["fc.weight"], head));
  EXPECT_TRUE(torch::equal(model->named_parameters()["layer4.1.conv2.weight"],
                           saved->named_parameters()["layer4.1.conv2.weight"]));
  const std::vector<std::string> lines = weights_lines(weights);
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[1].find("3 tensors of 'resnet18' begin at random: 'conv1.weight'"), std::string::npos) << lines[1];
}

TEST_F(FineTuning, KnowsTheNamesOfWrappersAndOfABertWithoutHeads) {
  const fs::path file = folder_ / "weights.safetensors";
  const auto cnn = small("mnist-cnn", 1), other = small("mnist-cnn", 2);
  for (const char* wrapper : {"module.", "_orig_mod.", "model."}) {
    save_renamed(file, *cnn, [&](const std::string& name) { return wrapper + name; });
    EXPECT_TRUE(load_weights(file, *other, /*strict=*/true).unused.empty()) << wrapper;
  }
  expect_same(other->named_parameters(), cnn->named_parameters());
  const auto bert = small("bert-base", 1), fresh = small("bert-base", 2);
  save_renamed(file, *bert, [](const std::string& name) {
    return name.rfind("bert.", 0) == 0 ? name.substr(5) : "classifier." + name;
  });
  const LoadedWeights weights = load_weights(file, *fresh);
  for (const std::string& left : weights.left) EXPECT_EQ(left.rfind("'cls.", 0), 0U) << left;
  EXPECT_EQ(weights.left.size(), 7U);
  EXPECT_TRUE(torch::equal(fresh->named_parameters()["bert.encoder.layer.0.output.dense.weight"],
                           bert->named_parameters()["bert.encoder.layer.0.output.dense.weight"]));
}

/// torchvision's name of a tensor as transformers' ResNetForImageClassification has it.
std::string hugging_face_name(std::string name) {
  const auto part_of = [](const std::string& layer) { return layer == "bn" ? "normalization" : "convolution"; };
  std::smatch found;
  if (std::regex_match(name, found, std::regex(R"(fc\.(.*))"))) return "classifier.1." + found[1].str();
  if (std::regex_match(name, found, std::regex(R"((conv|bn)1\.(.*))")))
    return fmt::format("resnet.embedder.embedder.{}.{}", part_of(found[1]), found[2].str());
  const auto less = [](const std::string& number) { return std::stoi(number) - 1; };
  if (std::regex_match(name, found, std::regex(R"(layer(\d)\.(\d+)\.downsample\.(\d)\.(.*))")))
    return fmt::format("resnet.encoder.stages.{}.layers.{}.shortcut.{}.{}", less(found[1]), found[2].str(),
                       part_of(found[3] == "1" ? "bn" : "conv"), found[4].str());
  if (std::regex_match(name, found, std::regex(R"(layer(\d)\.(\d+)\.(conv|bn)(\d)\.(.*))")))
    return fmt::format("resnet.encoder.stages.{}.layers.{}.layer.{}.{}.{}", less(found[1]), found[2].str(),
                       less(found[4]), part_of(found[3]), found[5].str());
  return name;
}

TEST_F(FineTuning, KnowsHuggingFacesNamesOfResNets) {
  const auto saved = small("resnet18", 1), loaded = small("resnet18", 2);
  save_renamed(folder_ / "weights.safetensors", *saved, hugging_face_name);
  EXPECT_TRUE(load_weights(folder_ / "weights.safetensors", *loaded, /*strict=*/true).unused.empty());
  expect_same(loaded->named_parameters(), saved->named_parameters());
  expect_same(loaded->named_buffers(), saved->named_buffers());
}

TEST_F(FineTuning, SaysHowAPickleIsConverted) {
  write_file_atomically(folder_ / "resnet18.pth", std::string("PK\3\4archive/data.pkl", 20));
  const std::string text = refusal(folder_ / "resnet18.pth", *small("mnist-cnn", 1));
  EXPECT_NE(text.find("a pickle may run any program"), std::string::npos) << text;
  EXPECT_NE(text.find("safetensors.torch.save_file("), std::string::npos) << text;
}

TEST_F(FineTuning, FindsTheWeightsOfARunItsNewestCheckpointAndItsBest) {
  const auto model = small("mnist-cnn", 1);
  const fs::path run = folder_ / "first";
  make_folders(run / "best");
  save_weights(run / "best" / kWeightsFile, *model);
  EXPECT_THROW(find_weights("first", folder_), Error);
  CheckpointContent content;
  content.weights = weights_of(*model);
  content.first_step_samples = 1;
  content.progress.step = 7;
  const fs::path checkpoint = save_checkpoint(run, content, {}, 1).folder;
  EXPECT_EQ(find_weights("first", folder_), checkpoint / kWeightsFile);
  EXPECT_EQ(find_weights(checkpoint.string(), "nowhere"), checkpoint / kWeightsFile);
  EXPECT_EQ(find_weights("first/best", folder_), run / "best" / kWeightsFile);
  save_weights(run / kWeightsFile, *model);
  EXPECT_EQ(find_weights("first", folder_), run / kWeightsFile);
  // The run has gone on since it came to its end after 5 steps.
  SummaryRecord summary;
  summary.steps = 5;
  RecordFile(run / kRecordsFile).add(summary, 0);
  EXPECT_EQ(find_weights("first", folder_), checkpoint / kWeightsFile);
}

INSTANTIATE_TEST_SUITE_P(Models, Weights, testing::Values("mnist-cnn", "resnet18", "unet", "transformer", "bert-base"),
                         [](const auto& test) { return test.param.substr(0, 4); });

}  // namespace
}  // namespace tutti
