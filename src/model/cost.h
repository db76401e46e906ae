#pragma once

#include "model/model.h"

namespace tutti {

/// What a model asks for.
struct ModelCost {
  int64_t parameters = 0;      // numbers that are trained
  int64_t tensors = 0;         // in which they come
  int64_t gradient_bytes = 0;  // that ranks exchange in each step
  int64_t forward_flop = 0;    // per sample, of convolutions and matrix products; a multiplication and addition are two
  int64_t activation_bytes = 0;  // per sample: what a forward in float32 leaves behind for backward
};

/// Counted, not estimated: runs one sample forward on the CPU, and looks at operators and memory meanwhile.
ModelCost measure_cost(Model& model, const SampleTraits& data);

}  // namespace tutti
