#pragma once

#include "data/dataset.h"

// How each data set is opened; dataset.cpp lists them by name.

namespace tutti {

TrainTest open_digits(const DataOptions& options);
TrainTest open_mnist(const DataOptions& options);

}  // namespace tutti
