#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data_options.h"
#include "tutti/dataset.h"

namespace tutti {

/// Throws UsageError where the name is taken.
void add_data_source(const DataSource& source);

std::vector<std::string> data_names();

/// The model that suits a data set where nobody names one; "" where it says none. Throws UsageError for an unknown
/// name.
std::string usual_model(const std::string& data_name);

/// Throws UsageError for an unknown name, Error for files that are missing or damaged.
TrainTest open_data(const DataOptions& options);

/// Random samples of these traits, the same for the same seed. Sizes of 0 mean a default.
TrainTest make_synthetic(const SampleTraits& traits, int64_t train_size, int64_t test_size, uint64_t seed,
                         const std::string& name = "synthetic");

}  // namespace tutti
