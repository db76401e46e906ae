#pragma once

#include <cstdint>
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
  table,         // inputs: float [n, features]; target: int64 [n], a class
};

/// What a model must know of the samples it is made for.
struct SampleTraits {
  SampleKind kind = SampleKind::images;
  std::vector<int64_t> shape;  // of one sample's first input: {channels, height, width}, {length} or {features}
  int64_t classes = 0;         // of the target, where it is a class
  int64_t vocabulary = 0;      // of text: tokens are below this
  int64_t masked = 0;          // of masked text: most positions to be guessed
  std::vector<std::string> class_names = {};  // where the data has them: `classes` of them
};

}  // namespace tutti
