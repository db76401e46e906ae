#pragma once

#include <cstdint>
#include <string>

#include "tutti/samples.h"

namespace tutti {

struct ModelOptions {
  SampleTraits data;                    // what it is made for; without a shape: the model's natural data
  std::string data_name = "";           // for messages
  int64_t width = 0;                    // channels or features of a layer; 0: the model's own
  int64_t depth = 0;                    // levels or layers; 0: the model's own
  bool checkpoint_activations = false;  // compute activations again in backward instead of keeping them
  bool random_weights = true;           // false: memory as it comes, for those who only look at sizes
};

}  // namespace tutti
