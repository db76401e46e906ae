#pragma once

#include "data/dataset.h"

namespace tutti {

/// `size` made-up samples with these traits, on the CPU, from torch's random generator: for measurements and tests,
/// where shapes and ranges matter and contents do not. Texts are full, without padding.
Batch example_batch(const SampleTraits& traits, int64_t size);

}  // namespace tutti
