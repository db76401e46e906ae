#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "inference/trained_model.h"

namespace tutti {

/// A picture's file, or a text.
struct Input {
  std::string name;     // what people and messages call it
  std::string content;  // the file's bytes, or the text
  std::string problem;  // it could not even be read; "" where it could
};

/// One answer of a classifier.
struct Guess {
  std::string label;
  double probability = 0;
};

/// What a model says of an input.
struct InputPrediction {
  std::string input;
  std::string problem;  // why there is no answer; "" where there is one
  /// The most likely first. One list; of masked text one for each [MASK].
  std::vector<std::vector<Guess>> guesses;
  /// Of segmentation: 0 or 255 for each pixel of the model's picture, and the share of 255.
  std::vector<float> scores;  // above 0: foreground
  int64_t height = 0, width = 0;
  double foreground = 0;
};

/// Answers in the order of the inputs, `top` guesses each. What is wrong with one input is said in its answer, and the
/// others go on. Throws Error where no input can have an answer.
std::vector<InputPrediction> predict(TrainedModel& trained, const std::vector<Input>& inputs, int64_t top);

}  // namespace tutti
