#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tutti/samples.h"

namespace tutti {

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

}  // namespace tutti
