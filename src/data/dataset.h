#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

/// What samples are, and so what a batch of n of them holds.
enum class SampleKind {
  images,        // inputs: float [n, channels, height, width]; target: int64 [n], a class
  segmentation,  // inputs: float [n, channels, height, width]; target: float [n, 1, height, width], 0 or 1
  sentences,     // inputs: int64 [n, length], token numbers, 0 after the end; target: int64 [n], a class
  masked_text,   // inputs: int64 tokens [n, length], int64 segments (0, 1) [n, length], int64 attention (1: a token, 0:
                 // padding) [n, length], int64 positions [n, masked] that are to be guessed, int64 words [n, masked]
                 // there, -100 for unused entries; target: int64 [n], 0: the second part follows the first, 1: it does
                 // not
};

/// What a model must know of the samples it is made for.
struct SampleTraits {
  SampleKind kind = SampleKind::images;
  std::vector<int64_t> shape;  // of one sample's first input: {channels, height, width} or {length}
  int64_t classes = 0;         // of the target, where it is a class
  int64_t vocabulary = 0;      // of text: tokens are below this
  int64_t masked = 0;          // of masked text: most positions to be guessed
};

/// Samples that go through the model together. `inputs` and `target` have `size` entries in their first dimension.
struct Batch {
  std::vector<torch::Tensor> inputs;
  torch::Tensor target;
  int64_t size = 0;
};

/// Which sample, and in which pass over the data. What is drawn at random for it (augmentation, masked words) follows
/// from both, so it varies between epochs but not with the threads that load, nor after a resume.
struct Pick {
  int64_t index = 0;
  int64_t epoch = 0;
  Pick(int64_t of_index, int64_t in_epoch = 0) : index(of_index), epoch(in_epoch) {}  // NOLINT: an index is a pick
};

/// A fixed list of samples. A sample depends on its Pick alone. Calls from several threads at once are fine.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t size() const = 0;
  virtual SampleTraits traits() const = 0;
  /// Whether a sample is another in another epoch; if not, it can be kept once it was loaded.
  virtual bool varies() const { return true; }
  /// Batch tensors, uninitialized, for `count` samples on the CPU, as traits() says; `pinned` for fast copies to a GPU.
  virtual Batch make_batch(int64_t count, bool pinned) const;
  /// Writes a sample into row `row` of a batch from make_batch. An Error names the file that it is about.
  virtual void load(Pick pick, int64_t row, Batch& batch) const = 0;
};

struct DataOptions {
  std::string name = "digits";
  /// Folder that holds the files; empty: $TUTTI_DATA/NAME, then data/NAME, ../shared/data/NAME.
  std::string folder = "";
  /// For generated data: samples to make; 0 means the data set's own default.
  int64_t train_size = 0;
  int64_t test_size = 0;
  uint64_t seed = 1;
  /// Vary training images from epoch to epoch; unset: what the data set does by itself.
  std::optional<bool> augment;
  /// Text: tokens per sample; 0: 64. Longer ones are cut, shorter ones padded.
  int64_t tokens = 0;
  /// Text: file of WordPiece tokens, one a line; empty: bert-vocab/vocab.txt where data sets are looked for.
  std::string vocabulary = "";
  /// Sentence trees: train on every phrase that has a label, not only on whole sentences.
  bool phrases = false;
  /// Synthetic data: what the samples must be, usually what the model was made for.
  std::optional<SampleTraits> traits;
};

struct TrainTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

std::vector<std::string> data_names();

/// Throws UsageError for an unknown name, Error for files that are missing or damaged.
TrainTest open_data(const DataOptions& options);

/// Random samples of these traits, the same for the same seed. Sizes of 0 mean a default.
TrainTest make_synthetic(const SampleTraits& traits, int64_t train_size, int64_t test_size, uint64_t seed,
                         const std::string& name = "synthetic");

}  // namespace tutti
