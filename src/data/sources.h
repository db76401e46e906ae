#pragma once

#include "data/dataset.h"

// How each data set is opened; dataset.cpp lists them by name and has checked that they know the options given.

namespace tutti {

constexpr int64_t kDefaultTokens = 64;
constexpr int64_t kMostTokens = 1 << 16;

TrainTest open_digits(const DataOptions& options);
TrainTest open_mnist(const DataOptions& options);
TrainTest open_bigmnist(const DataOptions& options);
TrainTest open_sst5(const DataOptions& options);
TrainTest open_folder_segmentation(const DataOptions& options);
TrainTest open_nuclei(const DataOptions& options);
TrainTest open_image_folder(const DataOptions& options);
TrainTest open_image_shards(const DataOptions& options);
TrainTest open_csv(const DataOptions& options);
TrainTest open_text_folder(const DataOptions& options);
TrainTest open_text_csv(const DataOptions& options);
TrainTest open_text(const DataOptions& options);
TrainTest open_gutenberg(const DataOptions& options);
TrainTest open_synthetic(const DataOptions& options);

}  // namespace tutti
