#include "data/dataset.h"

#include <torch/cuda.h>

#include <algorithm>

#include "base/names.h"
#include "data/sources.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Options that only some data sets know.
enum Takes : unsigned {
  kSizes = 1,
  kAugment = 2,
  kTokens = 4,
  kVocabulary = 8,
  kPhrases = 16,
  kPictures = 32,  // sizes, parts, normalization, damaged ones
  kHeldOut = 64,
  kColumns = 128,
  kTextColumn = 256,
  kImageSize = 512,
  kFiles = 1024,
};

std::vector<DataSource>& sources() {
  static std::vector<DataSource> table{
      {"digits", open_digits, kSizes, "mnist-cnn"},
      {"mnist", open_mnist, kFiles | kAugment, "mnist-cnn"},
      {"bigmnist", open_bigmnist, kFiles | kSizes, "mnist-cnn"},
      {"image-folder", open_image_folder, kFiles | kAugment | kPictures | kImageSize | kHeldOut, "resnet18"},
      {"image-shards", open_image_shards, kFiles | kAugment | kPictures | kImageSize | kHeldOut, "resnet18"},
      {"csv", open_csv, kFiles | kHeldOut | kColumns, "mlp"},
      {"sst5", open_sst5, kFiles | kTokens | kPhrases, "transformer"},
      {"text-folder", open_text_folder, kFiles | kTokens | kHeldOut, "transformer"},
      {"text-csv", open_text_csv, kFiles | kTokens | kHeldOut | kColumns | kTextColumn, "transformer"},
      {"nuclei", open_nuclei, kFiles | kAugment, "unet"},
      {"folder-segmentation", open_folder_segmentation, kFiles | kAugment | kImageSize, "unet"},
      {"gutenberg", open_gutenberg, kFiles | kTokens | kVocabulary, "bert-base"},
      {"text", open_text, kFiles | kTokens | kVocabulary, "bert-base"},
      {"synthetic", open_synthetic, kSizes},
      {"synthetic-imagenet", open_synthetic, kSizes, "resnet18"},
      {"synthetic-mnist", open_synthetic, kSizes, "mnist-cnn"},
      {"synthetic-segmentation", open_synthetic, kSizes, "unet"},
      {"synthetic-sst5", open_synthetic, kSizes, "transformer"},
      {"synthetic-text", open_synthetic, kSizes, "bert-base"},
  };
  return table;
}

const DataSource& find_source(const std::string& name) {
  const auto source =
      std::find_if(sources().begin(), sources().end(), [&name](const DataSource& known) { return name == known.name; });
  if (source == sources().end()) throw UsageError(unknown_name("data set", name, data_names()));
  return *source;
}

/// An option that does nothing was meant to do something.
void check_taken(const DataSource& source, unsigned option, bool is_given, const char* text) {
  if (!is_given || (source.takes & option) != 0) return;
  std::string names;
  for (const DataSource& other : sources()) {
    if ((other.takes & option) != 0) names += (names.empty() ? "" : ", ") + other.name;
  }
  throw UsageError("{} has no meaning for --data {}: it is for {}", text, source.name, names);
}

}  // namespace

Batch Dataset::make_batch(int64_t count, bool pinned) const {
  const SampleTraits what = traits();
  // Without a GPU there is nothing to pin for, and torch refuses to.
  const bool pin = pinned && torch::cuda::is_available();
  const auto tensor = [count, pin](std::vector<int64_t> shape, torch::ScalarType type) {
    shape.insert(shape.begin(), count);
    return torch::empty(shape, torch::dtype(type).pinned_memory(pin));
  };
  Batch batch;
  batch.size = count;
  switch (what.kind) {
    case SampleKind::images:
      batch.inputs = {tensor(what.shape, torch::kFloat)};
      batch.target = tensor({}, torch::kLong);
      break;
    case SampleKind::segmentation:
      batch.inputs = {tensor(what.shape, torch::kFloat)};
      batch.target = tensor({1, what.shape[1], what.shape[2]}, torch::kFloat);
      break;
    case SampleKind::sentences:
      batch.inputs = {tensor(what.shape, torch::kLong)};
      batch.target = tensor({}, torch::kLong);
      break;
    case SampleKind::masked_text:
      for (int part = 0; part < 3; ++part) batch.inputs.push_back(tensor(what.shape, torch::kLong));
      for (int part = 0; part < 2; ++part) batch.inputs.push_back(tensor({what.masked}, torch::kLong));
      batch.target = tensor({}, torch::kLong);
      break;
    case SampleKind::table:
      batch.inputs = {tensor(what.shape, torch::kFloat)};
      batch.target = tensor({}, torch::kLong);
      break;
  }
  return batch;
}

void Dataset::encode(std::string_view /*content*/, const std::string& input, int64_t /*row*/, Batch& /*batch*/) const {
  throw Error("{}: the data set '{}' does not say how a sample is made of what others bring", input, name());
}

std::string Dataset::label(int64_t number) const {
  const std::vector<std::string> names = traits().class_names;
  const auto place = static_cast<size_t>(number);
  return place < names.size() ? names[place] : std::to_string(number);
}

void add_data_source(const DataSource& source) {
  const auto is_taken = [&](const DataSource& other) { return other.name == source.name; };
  if (std::any_of(sources().begin(), sources().end(), is_taken))
    throw UsageError("there is a data set '{}' already: give yours another name", source.name);
  sources().push_back(source);
}

std::vector<std::string> data_names() {
  std::vector<std::string> names;
  names.reserve(sources().size());
  for (const DataSource& source : sources()) names.push_back(source.name);
  return names;
}

std::string usual_model(const std::string& data_name) { return find_source(data_name).model; }

TrainTest open_data(const DataOptions& options) {
  if (options.train_size < 0 || options.test_size < 0) {
    throw UsageError("a data set cannot have {} training and {} test samples; give sizes above 0, or 0 for the default",
                     options.train_size, options.test_size);
  }
  if (options.tokens < 0 || options.tokens > kMostTokens) {
    throw UsageError("--tokens is {}: it must be from 1 to {}, or 0 for the default", options.tokens, kMostTokens);
  }
  if (options.val_fraction != 0 && !(options.val_fraction > 0 && options.val_fraction < 1))
    throw UsageError("--val-fraction is {}: it must be above 0 and below 1", options.val_fraction);
  const DataSource& source = find_source(options.name);
  check_taken(source, kFiles, !options.folder.empty(), "--data-path");
  check_taken(source, kSizes, options.train_size != 0, "--train-size");
  check_taken(source, kSizes, options.test_size != 0, "--test-size");
  check_taken(source, kAugment, options.augment.value_or(false), "--augment");
  check_taken(source, kTokens, options.tokens != 0, "--tokens");
  check_taken(source, kVocabulary, !options.vocabulary.empty(), "--vocabulary");
  check_taken(source, kPhrases, options.phrases, "--data-phrases");
  const DataOptions usual;
  check_taken(source, kImageSize, options.image_size != 0, "--image-size");
  check_taken(source, kPictures, options.crop_scale != usual.crop_scale, "--crop-scale");
  check_taken(source, kPictures, !options.flip, "--no-flip");
  check_taken(source, kPictures, options.image_mean != usual.image_mean, "--image-mean");
  check_taken(source, kPictures, options.image_std != usual.image_std, "--image-std");
  check_taken(source, kPictures, options.cache_bytes != 0, "--cache-mb");
  check_taken(source, kPictures, options.skip_bad_samples, "--skip-bad-samples");
  check_taken(source, kHeldOut, options.val_fraction != 0, "--val-fraction");
  check_taken(source, kColumns, !options.label.empty(), "--label");
  check_taken(source, kTextColumn, !options.text.empty(), "--text");
  return source.open(options);
}

}  // namespace tutti
