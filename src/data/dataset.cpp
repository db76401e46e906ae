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
};

std::vector<DataSource>& sources() {
  static std::vector<DataSource> table{
      {"digits", open_digits, kSizes},
      {"mnist", open_mnist, kAugment},
      {"bigmnist", open_bigmnist, kSizes},
      {"sst5", open_sst5, kTokens | kPhrases},
      {"nuclei", open_nuclei, kAugment},
      {"folder-segmentation", open_folder_segmentation, kAugment},
      {"gutenberg", open_gutenberg, kTokens | kVocabulary},
      {"text", open_text, kTokens | kVocabulary},
      {"synthetic", open_synthetic, kSizes},
      {"synthetic-imagenet", open_synthetic, kSizes},
      {"synthetic-mnist", open_synthetic, kSizes},
      {"synthetic-segmentation", open_synthetic, kSizes},
      {"synthetic-sst5", open_synthetic, kSizes},
      {"synthetic-text", open_synthetic, kSizes},
  };
  return table;
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
  }
  return batch;
}

void Dataset::encode(std::string_view /*content*/, const std::string& input, int64_t /*row*/, Batch& /*batch*/) const {
  throw Error("{}: the data set '{}' does not say how a sample is made of what others bring", input, name());
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

TrainTest open_data(const DataOptions& options) {
  if (options.train_size < 0 || options.test_size < 0) {
    throw UsageError("a data set cannot have {} training and {} test samples; give sizes above 0, or 0 for the default",
                     options.train_size, options.test_size);
  }
  if (options.tokens < 0 || options.tokens > kMostTokens) {
    throw UsageError("--tokens is {}: it must be from 1 to {}, or 0 for the default", options.tokens, kMostTokens);
  }
  const auto source = std::find_if(sources().begin(), sources().end(),
                                   [&options](const DataSource& known) { return options.name == known.name; });
  if (source == sources().end()) throw UsageError(unknown_name("data set", options.name, data_names()));
  check_taken(*source, kSizes, options.train_size != 0, "--train-size");
  check_taken(*source, kSizes, options.test_size != 0, "--test-size");
  check_taken(*source, kAugment, options.augment.value_or(false), "--augment");
  check_taken(*source, kTokens, options.tokens != 0, "--tokens");
  check_taken(*source, kVocabulary, !options.vocabulary.empty(), "--vocabulary");
  check_taken(*source, kPhrases, options.phrases, "--data-phrases");
  return source->open(options);
}

}  // namespace tutti
