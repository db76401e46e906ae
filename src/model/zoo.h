#pragma once

#include <memory>

#include "model/model.h"

// How each model is made; model.cpp lists them by name. `options.data` has a shape and is of the model's kind.

namespace tutti {

/// The network of PyTorch's MNIST example: two convolutions, two linear layers, 1.2 million parameters.
std::shared_ptr<Model> make_mnist_cnn(const ModelOptions& options);

/// Throws a UsageError that names model, data and why they do not fit.
[[noreturn]] void refuse_data(const std::string& model, const ModelOptions& options, const std::string& reason);

}  // namespace tutti
