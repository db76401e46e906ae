#pragma once

#include <memory>

#include "model/model.h"

// How each model is made; model.cpp lists them by name. `options.data` has a shape and is of the model's kind.

namespace tutti {

/// The network of PyTorch's MNIST example: two convolutions, two linear layers, 1.2 million parameters.
std::shared_ptr<Model> make_mnist_cnn(const ModelOptions& options);

/// Residual networks as in torchvision.
std::shared_ptr<Model> make_resnet18(const ModelOptions& options);
std::shared_ptr<Model> make_resnet50(const ModelOptions& options);
std::shared_ptr<Model> make_resnet101(const ModelOptions& options);

/// U-Net as in milesial's Pytorch-UNet: `width` channels at the top, doubled on each of `depth` levels.
std::shared_ptr<Model> make_unet(const ModelOptions& options);

/// A Transformer encoder that classifies sentences: `depth` layers of `width` features.
std::shared_ptr<Model> make_transformer(const ModelOptions& options);

/// A multilayer perceptron: `depth` hidden layers of `width` features.
std::shared_ptr<Model> make_mlp(const ModelOptions& options);

/// BERT as in Hugging Face's BertForPreTraining: `depth` layers of `width` features.
std::shared_ptr<Model> make_bert_base(const ModelOptions& options);
std::shared_ptr<Model> make_bert_large(const ModelOptions& options);

/// Throws a UsageError that names model, data and why they do not fit.
[[noreturn]] void refuse_data(const std::string& model, const ModelOptions& options, const std::string& reason);

}  // namespace tutti
