#pragma once

#include <memory>

#include "model/model.h"

// How each model is made; model.cpp lists them by name.

namespace tutti {

/// The network of PyTorch's MNIST example: two convolutions, two linear layers, 1.2 million parameters.
std::shared_ptr<Model> make_mnist_cnn();

}  // namespace tutti
