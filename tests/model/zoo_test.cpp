// What every model of the zoo is: its size, its names, what data it takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/model.h"
#include "sim/model_shape.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::shared_ptr<Model> sized(const std::string& name) {
  ModelOptions options;
  options.random_weights = false;
  return make_model(name, options);
}

int64_t parameters_of(const std::string& name) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : sized(name)->parameters()) count += parameter.numel();
  return count;
}

std::vector<std::string> tensor_names(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) names.push_back(parameter.key());
  for (const auto& buffer : model.named_buffers()) names.push_back(buffer.key());
  return names;
}

std::string refusal(const std::string& name, const ModelOptions& options) {
  try {
    make_model(name, options);
    return "no error";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Zoo, ModelsAreAsLargeAsTheOriginals) {
  EXPECT_EQ(parameters_of("mnist-cnn"), 1'199'882);
  EXPECT_EQ(parameters_of("resnet18"), 11'689'512);   // torchvision
  EXPECT_EQ(parameters_of("resnet50"), 25'557'032);   // torchvision
  EXPECT_EQ(parameters_of("resnet101"), 44'549'160);  // torchvision
  EXPECT_EQ(parameters_of("unet"), 31'037'633);       // Pytorch-UNet, 3 channels, 1 class, transposed convolutions
  EXPECT_EQ(parameters_of("mlp"), 65 * 256 + 257 * 256 + 257 * 10);
  EXPECT_EQ(parameters_of("bert-base"), 110'106'428);   // transformers, BertForPreTraining
  EXPECT_EQ(parameters_of("bert-large"), 336'226'108);  // transformers, BertForPreTraining
}

TEST(Zoo, ModelsHaveTheTensorsThatThePlannerThinksTheyHave) {
  EXPECT_THAT(shape_names(), ::testing::UnorderedElementsAreArray(model_names()));
  for (const std::string& name : model_names()) {
    std::map<std::string, int64_t> real, planned;
    for (const auto& parameter : sized(name)->named_parameters()) real[parameter.key()] = parameter.value().numel();
    for (const LayerShape& layer : model_shape(name).layers)
      for (const auto& [tensor, elements] : layer.parameters) planned[tensor] = elements;
    EXPECT_EQ(planned, real) << name;
  }
}

TEST(Zoo, ResNetsHaveTorchvisionsNames) {
  const auto resnet50 = tensor_names(*sized("resnet50"));
  EXPECT_THAT(resnet50, IsSupersetOf({"conv1.weight", "bn1.running_mean", "bn1.num_batches_tracked",
                                      "layer1.0.downsample.0.weight", "layer1.0.downsample.1.running_var",
                                      "layer3.5.conv3.weight", "layer4.2.bn3.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(resnet50.size(), 320U);  // entries of torchvision's state_dict
  EXPECT_EQ(tensor_names(*sized("resnet18")).size(), 122U);
  EXPECT_EQ(tensor_names(*sized("resnet101")).size(), 626U);
}

TEST(Zoo, ResNetsStrideIn3x3ConvolutionsAndHaveAShortcutWhereTheShapeChanges) {
  const auto parameters = sized("resnet50")->named_parameters();
  EXPECT_EQ(parameters["layer2.0.conv1.weight"].sizes(), (torch::IntArrayRef{128, 256, 1, 1}));
  EXPECT_EQ(parameters["layer2.0.conv2.weight"].sizes(), (torch::IntArrayRef{128, 128, 3, 3}));
  EXPECT_EQ(parameters["layer2.0.downsample.0.weight"].sizes(), (torch::IntArrayRef{512, 256, 1, 1}));
  EXPECT_FALSE(sized("resnet18")->named_parameters().contains("layer1.0.downsample.0.weight"));
}

TEST(Zoo, UNetHasPytorchUNetsNames) {
  const auto names = tensor_names(*sized("unet"));
  EXPECT_THAT(names, IsSupersetOf({"inc.double_conv.0.weight", "inc.double_conv.4.running_var",
                                   "down1.maxpool_conv.1.double_conv.0.weight",
                                   "down4.maxpool_conv.1.double_conv.3.weight", "up1.up.weight", "up1.up.bias",
                                   "up4.conv.double_conv.1.bias", "outc.conv.weight", "outc.conv.bias"}));
}

TEST(Zoo, TransformerHasTheNamesOfTorchsEncoder) {
  const auto model = make_model("transformer");
  EXPECT_THAT(tensor_names(*model),
              IsSupersetOf({"embedding.weight", "encoder.layers.0.self_attn.in_proj_weight",
                            "encoder.layers.0.self_attn.in_proj_bias", "encoder.layers.5.self_attn.out_proj.weight",
                            "encoder.layers.5.linear1.weight", "encoder.layers.5.linear2.bias",
                            "encoder.layers.5.norm1.weight", "encoder.layers.5.norm2.bias", "classifier.weight"}));
  EXPECT_EQ(model->named_parameters()["encoder.layers.0.linear1.weight"].sizes(), (torch::IntArrayRef{1024, 256}));
  EXPECT_FALSE(model->named_parameters().contains("encoder.layers.6.linear1.weight"));
}

TEST(Zoo, BertHasHuggingFacesNames) {
  const auto names = tensor_names(*sized("bert-base"));
  EXPECT_THAT(
      names,
      IsSupersetOf(
          {"bert.embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
           "bert.embeddings.token_type_embeddings.weight", "bert.embeddings.LayerNorm.weight",
           "bert.encoder.layer.0.attention.self.query.weight", "bert.encoder.layer.0.attention.output.dense.bias",
           "bert.encoder.layer.0.attention.output.LayerNorm.weight", "bert.encoder.layer.11.intermediate.dense.weight",
           "bert.encoder.layer.11.output.dense.weight", "bert.encoder.layer.11.output.LayerNorm.bias",
           "bert.pooler.dense.weight", "cls.predictions.bias", "cls.predictions.transform.dense.weight",
           "cls.predictions.transform.LayerNorm.weight", "cls.seq_relationship.weight"}));
  // Hugging Face's list without the two that are tied: cls.predictions.decoder.weight and .bias.
  EXPECT_EQ(names.size(), 206U);
}

TEST(Zoo, ModelsTakeTheShapeOfTheirData) {
  ModelOptions options;
  options.data = {SampleKind::images, {1, 28, 28}, 10};
  const auto parameters = make_model("resnet18", options)->named_parameters();
  EXPECT_EQ(parameters["conv1.weight"].sizes(), (torch::IntArrayRef{64, 1, 7, 7}));
  EXPECT_EQ(parameters["fc.weight"].size(0), 10);
}

TEST(Zoo, WidthAndDepthChangeTheSize) {
  ModelOptions options;
  options.width = 8;
  options.depth = 2;
  const auto unet = make_model("unet", options)->named_parameters();
  EXPECT_EQ(unet["inc.double_conv.0.weight"].size(0), 8);
  EXPECT_EQ(unet["down2.maxpool_conv.1.double_conv.3.weight"].size(0), 32);
  EXPECT_FALSE(unet.contains("down3.maxpool_conv.1.double_conv.0.weight"));
  options.width = 128;
  options.depth = 1;
  const auto bert = make_model("bert-base", options)->named_parameters();
  EXPECT_EQ(bert["bert.pooler.dense.weight"].size(0), 128);
  EXPECT_FALSE(bert.contains("bert.encoder.layer.1.output.dense.bias"));
}

TEST(Zoo, DataOfAnotherKindIsRefusedNamingTheModelsThatFit) {
  ModelOptions options;
  options.data = {SampleKind::sentences, {64}, 5, 20000};
  options.data_name = "sst5";
  EXPECT_THAT(refusal("resnet18", options),
              AllOf(HasSubstr("'resnet18'"), HasSubstr("'sst5'"), HasSubstr("sentences of 64 tokens"),
                    HasSubstr("it takes images"), HasSubstr("Models for this data: transformer")));
  options.data = {SampleKind::images, {1, 28, 28}, 10};
  options.data_name = "mnist";
  EXPECT_THAT(refusal("bert-base", options),
              HasSubstr("Models for this data: mnist-cnn, resnet18, resnet50, resnet101"));
}

TEST(Zoo, DataOfAnImpossibleShapeIsRefused) {
  ModelOptions options;
  options.data = {SampleKind::segmentation, {3, 12, 200}};
  EXPECT_THAT(refusal("unet", options), AllOf(HasSubstr("3×12×200"), HasSubstr("16 pixels"), HasSubstr("--depth")));
  options.data = {SampleKind::masked_text, {600}, 0, 1000, 10};
  EXPECT_THAT(refusal("bert-base", options), HasSubstr("at most 512 tokens"));
  options.data = {SampleKind::images, {1, 5, 5}, 10};
  EXPECT_THAT(refusal("mnist-cnn", options), HasSubstr("at least 6×6"));
}

TEST(Zoo, OptionsThatAModelLacksAreRefused) {
  ModelOptions narrow;
  narrow.width = 32;
  EXPECT_THAT(refusal("resnet18", narrow), HasSubstr("--width"));
  EXPECT_THAT(refusal("transformer", narrow), HasSubstr("multiples of 64"));
  ModelOptions shallow;
  shallow.depth = -1;
  EXPECT_THAT(refusal("unet", shallow), HasSubstr("above 0"));
  ModelOptions frugal;
  frugal.checkpoint_activations = true;
  EXPECT_THAT(refusal("mnist-cnn", frugal), HasSubstr("--checkpoint-activations"));
}

TEST(Zoo, ChannelsLastChangesStridesAndNothingElse) {
  const auto model = make_model("mnist-cnn");
  const torch::Tensor before = model->named_parameters()["conv2.weight"].detach().clone();
  use_channels_last(*model);
  const torch::Tensor after = model->named_parameters()["conv2.weight"];
  EXPECT_TRUE(after.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(after.equal(before));
}

}  // namespace
}  // namespace tutti
