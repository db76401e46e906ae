#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/names.h"
#include "model/zoo.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::vector<ModelSource>& zoo() {
  static const SampleTraits mnist{SampleKind::images, {1, 28, 28}, 10};
  static const SampleTraits imagenet{SampleKind::images, {3, 224, 224}, 1000};
  static const SampleTraits nuclei{SampleKind::segmentation, {3, 256, 256}};
  static const SampleTraits sentiment{SampleKind::sentences, {256}, 5, 20000};
  static const SampleTraits books{SampleKind::masked_text, {64}, 0, 30522, 10};
  static const SampleTraits numbers{SampleKind::table, {64}, 10};
  static std::vector<ModelSource> entries{
      {"mnist-cnn", mnist, make_mnist_cnn},
      {"resnet18", imagenet, make_resnet18},
      {"resnet50", imagenet, make_resnet50},
      {"resnet101", imagenet, make_resnet101},
      {"unet", nuclei, make_unet, true, true},
      {"transformer", sentiment, make_transformer, true, true},
      {"mlp", numbers, make_mlp, true},
      {"bert-base", books, make_bert_base, true, true},
      {"bert-large", books, make_bert_large, true, true},
  };
  return entries;
}

const ModelSource& find_entry(const std::string& name) {
  for (const ModelSource& entry : zoo())
    if (entry.name == name) return entry;
  throw UsageError(unknown_name("model", name, model_names()));
}

const char* kind_name(SampleKind kind) {
  switch (kind) {
    case SampleKind::images:
      return "images";
    case SampleKind::segmentation:
      return "images with masks";
    case SampleKind::sentences:
      return "sentences";
    case SampleKind::masked_text:
      return "masked text";
    case SampleKind::table:
      return "tables";
  }
  return "";
}

std::vector<std::string> models_for(SampleKind kind) {
  std::vector<std::string> names;
  for (const ModelSource& entry : zoo())
    if (entry.natural.kind == kind) names.push_back(entry.name);
  return names;
}

}  // namespace

void add_model_source(const ModelSource& source) {
  const auto is_taken = [&](const ModelSource& other) { return other.name == source.name; };
  if (std::any_of(zoo().begin(), zoo().end(), is_taken))
    throw UsageError("there is a model '{}' already: give yours another name", source.name);
  zoo().push_back(source);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelSource& entry : zoo()) names.push_back(entry.name);
  return names;
}

std::string describe(const SampleTraits& traits) {
  std::string text = fmt::format("{} {}", kind_name(traits.kind), fmt::join(traits.shape, "×"));
  if (traits.kind == SampleKind::table)
    text = fmt::format("{} of {} features", kind_name(traits.kind), traits.shape[0]);
  else if (traits.shape.size() == 1)
    text = fmt::format("{} of {} tokens", kind_name(traits.kind), traits.shape[0]);
  if (traits.vocabulary > 0) text += fmt::format(" out of {}", traits.vocabulary);
  if (traits.classes > 0) text += fmt::format(", {} classes", traits.classes);
  return text;
}

SampleTraits natural_data(const std::string& model) { return find_entry(model).natural; }

std::shared_ptr<Model> make_model(const std::string& name) { return make_model(name, ModelOptions()); }

std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& given) {
  const ModelSource& entry = find_entry(name);
  ModelOptions options = given;
  if (options.data.shape.empty()) options.data = entry.natural;
  if (options.data.kind != entry.natural.kind)
    refuse_data(name, options,
                fmt::format("it takes {}. Models for this data: {}", kind_name(entry.natural.kind),
                            fmt::join(models_for(options.data.kind), ", ")));
  if (!entry.has_size && (options.width != 0 || options.depth != 0))
    throw UsageError("model '{}' has one size only: leave --width and --depth out", name);
  if (options.width < 0 || options.depth < 0)
    throw UsageError("--width {} and --depth {} must be above 0, or 0 for the model's own", options.width,
                     options.depth);
  if (!entry.can_checkpoint && options.checkpoint_activations)
    throw UsageError("model '{}' keeps its activations: leave --checkpoint-activations out", name);
  return entry.make(options);
}

void refuse_data(const std::string& model, const ModelOptions& options, const std::string& reason) {
  throw UsageError("model '{}' does not fit the data{} ({}): {}", model,
                   options.data_name.empty() ? "" : fmt::format(" '{}'", options.data_name), describe(options.data),
                   reason);
}

void use_channels_last(torch::nn::Module& model) {
  for (torch::Tensor& parameter : model.parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.detach().contiguous(torch::MemoryFormat::ChannelsLast));
}

}  // namespace tutti
