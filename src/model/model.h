#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/model.h"

namespace tutti {

/// Throws UsageError where the name is taken.
void add_model_source(const ModelSource& source);

/// "images 1×28×28, 10 classes", for people.
std::string describe(const SampleTraits& traits);

std::vector<std::string> model_names();

/// The data that the model was published with; throws UsageError for an unknown name.
SampleTraits natural_data(const std::string& model);

/// Throws UsageError for an unknown name, for data that the model cannot take (naming those that can), and for options
/// that it does not have. Weights depend on torch's current random state.
std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& options);
std::shared_ptr<Model> make_model(const std::string& name);

/// Gives the weights of convolutions channels-last strides. Before an engine takes the model over, which keeps them so.
void use_channels_last(torch::nn::Module& model);

}  // namespace tutti
