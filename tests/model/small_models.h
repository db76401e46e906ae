#pragma once

#include <torch/cuda.h>

#include <ostream>
#include <string>
#include <vector>

#include "base/torch_compat.h"
#include "model/example_batch.h"
#include "model/model.h"

namespace tutti {

/// Options of a model so small that it trains in a moment.
inline ModelOptions small_options(const std::string& name) {
  ModelOptions options;
  if (name == "mnist-cnn") options.data = {SampleKind::images, {1, 28, 28}, 10};
  if (name.rfind("resnet", 0) == 0) options.data = {SampleKind::images, {3, 32, 32}, 7};
  if (name == "unet") options.data = {SampleKind::segmentation, {3, 21, 18}};  // sizes that pooling does not divide
  if (name == "transformer") options.data = {SampleKind::sentences, {12}, 5, 50};
  if (name == "mlp") options.data = {SampleKind::table, {9}, 5};
  if (name.rfind("bert", 0) == 0) options.data = {SampleKind::masked_text, {12}, 0, 50, 3};
  if (options.data.kind == SampleKind::images) return options;
  options.width = name == "unet" ? 8 : 64;
  options.depth = 2;
  return options;
}

/// Where and how a test computes. The GPU's turn comes where there is one.
struct Place {
  std::string name;
  torch::Device device = torch::kCPU;
  bool is_bf16 = false;
};
inline std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.name; }

inline std::vector<Place> places() {
  std::vector<Place> list{{"cpu", torch::kCPU, false}};
  if (torch::cuda::is_available()) {
    list.push_back({"cuda", torch::kCUDA, false});
    list.push_back({"cuda_bf16", torch::kCUDA, true});
  }
  return list;
}

/// As the trainer does it: channels-last on a GPU, where the model prefers that.
inline void move_to(const Place& place, Model& model, Batch& batch) {
  allow_tf32(false);
  model.to(place.device);
  for (torch::Tensor& input : batch.inputs) input = input.to(place.device);
  batch.target = batch.target.to(place.device);
  if (place.device.is_cpu() || !model.prefers_channels_last()) return;
  use_channels_last(model);
  batch.inputs[0] = batch.inputs[0].contiguous(torch::MemoryFormat::ChannelsLast);
}

/// "resnet18_cuda_bf16", for GoogleTest.
inline std::string test_name(std::string model, const Place& place) {
  for (char& letter : model)
    if (letter == '-') letter = '_';
  return model + "_" + place.name;
}

}  // namespace tutti
