#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "model/model.h"
#include "options/train_options.h"
#include "train/evaluation.h"

namespace tutti {

/// Weights that a person named, and how they were trained where their run tells.
struct TrainedWeights {
  std::filesystem::path file;
  std::optional<TrainOptions> had;
};

/// `given` is a run's name or folder (its final weights, or its newest checkpoint), a checkpoint's folder, a run's
/// `best`, or a .safetensors file. Throws Error.
TrainedWeights find_trained(const std::string& given, const std::filesystem::path& runs_folder);

/// What they were trained with, but for what was given anew; `is_given` is asked with options' names. Throws UsageError
/// where nobody says which model it is.
TrainOptions options_of(const TrainedWeights& weights, const TrainOptions& given,
                        const std::function<bool(const std::string&)>& is_given);

/// A model in evaluation mode with its weights, and the data that it was made for.
struct TrainedModel {
  TrainOptions options;
  std::filesystem::path file;
  TrainTest data;
  std::shared_ptr<Model> model;
  BatchPlace place;
  bool bf16 = false;

  SampleTraits traits() const { return data.test->traits(); }
};

/// Every tensor of the model has to be in the file. Throws Error, UsageError.
TrainedModel open_trained(const std::filesystem::path& file, const TrainOptions& options);

}  // namespace tutti
