#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/model.h"

namespace tutti {

/// What came of reading a file of weights into a model.
struct LoadedWeights {
  std::filesystem::path file;
  std::string model;
  int64_t loaded = 0;               // tensors that the file had
  std::vector<std::string> left;    // tensors that keep their values, each with the reason
  std::vector<std::string> unused;  // names in the file that the model does not know
};

/// Loads weights from anywhere: Tutti's, torchvision's or Hugging Face's names, any floating type. What the file does
/// not have, or has in another shape, keeps its values: a new head, another number of channels. A file that is far from
/// the model is refused: more than three layers of another shape, or less than half of the tensors. So is, with
/// `strict`, one that does not hold them all. Throws Error that names the first difference, and leaves the model as it
/// was.
LoadedWeights load_weights(const std::filesystem::path& file, Model& model, bool strict = false);

/// "12 of 14 tensors from …; as they were initialized: 'fc.weight' (…), …" for people, and the names without a place.
std::vector<std::string> weights_lines(const LoadedWeights& weights);

/// The .safetensors file that --weights names: a file, a run's folder or name, or a folder in it that has weights. Of a
/// run, its final weights; those of its newest checkpoint where it goes further. Throws Error.
std::filesystem::path find_weights(const std::string& given, const std::filesystem::path& runs_folder);

}  // namespace tutti
