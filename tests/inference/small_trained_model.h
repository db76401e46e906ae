#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "inference/trained_model.h"
#include "train/checkpoint.h"

namespace tutti {

/// A folder that goes with its owner.
class FolderForWeights {
 public:
  FolderForWeights() { make_folders(path_); }
  ~FolderForWeights() { remove_tree(path_); }
  FolderForWeights(const FolderForWeights&) = delete;
  FolderForWeights& operator=(const FolderForWeights&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("tutti-inference-test-" + std::to_string(::getpid()));
};

/// Options of a model that is made in a moment, on data of this name.
inline TrainOptions small_run(const std::string& model, const std::string& data) {
  TrainOptions options;
  options.model = model;
  options.data.name = data;
  options.data.train_size = 20;
  options.data.test_size = 30;
  options.device = "cpu";
  options.eval_batch = 7;
  if (model == "unet") options.model_options.width = 4;
  if (model == "unet") options.model_options.depth = 2;
  if (model == "transformer" || model == "bert-base") options.model_options.width = 64;
  if (model == "transformer" || model == "bert-base") options.model_options.depth = 1;
  return options;
}

/// The same with random weights, by way of a file in `folder`.
inline TrainedModel untrained(const FolderForWeights& folder, const TrainOptions& options) {
  DataOptions data = options.data;
  data.traits = natural_data(options.model);
  ModelOptions model_options = options.model_options;
  model_options.data = open_data(data).test->traits();
  torch::manual_seed(1);
  save_weights(folder.path() / kWeightsFile, *make_model(options.model, model_options));
  return open_trained(folder.path() / kWeightsFile, options);
}

}  // namespace tutti
