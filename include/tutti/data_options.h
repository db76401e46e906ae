#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tutti/samples.h"

namespace tutti {

struct DataOptions {
  std::string name = "digits";
  /// Folder that holds the files, or the one file; empty: $TUTTI_DATA/NAME, then data/NAME, ../shared/data/NAME.
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
  /// Pictures of classes: side of what the model sees; 0: 224.
  int64_t image_size = 0;
  /// … to train on: least share of a picture's area that is shown, and whether it is mirrored half of the time.
  double crop_scale = 0.08;
  bool flip = true;
  /// … what is taken off red, green and blue (0 to 1), and what they are divided by: those of ImageNet.
  std::string image_mean = "0.485,0.456,0.406";
  std::string image_std = "0.229,0.224,0.225";
  /// … memory of a rank for pictures that were decoded and shrunk; 0: none are kept.
  int64_t cache_bytes = 0;
  /// … replace those that cannot be read by the next one, instead of ending the run.
  bool skip_bad_samples = false;
  /// Own files that are not divided already: share of them that is the test; 0: a fifth.
  double val_fraction = 0;
  /// Tables: the columns of the class and of the text; empty: the last one, and the only other one.
  std::string label = "";
  std::string text = "";
  /// Synthetic data: what the samples must be, usually what the model was made for.
  std::optional<SampleTraits> traits;
};

}  // namespace tutti
