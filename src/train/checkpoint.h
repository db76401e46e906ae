#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/safetensors.h"
#include "model/model.h"
#include "tutti/engine.h"

namespace tutti {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// How far training has come.
struct TrainProgress {
  int64_t step = 0;              // done, over all epochs
  int64_t epoch = 0;             // under way
  int64_t samples_in_epoch = 0;  // of that epoch's order, already trained on by all ranks together
};

/// A checkpoint is a folder: model.safetensors (weights and buffers), optimizer.safetensors, state.json (progress,
/// options, seed, checksums of the other two). Randomness is derived from seed, step and rank, so the seed is all there
/// is to keep. `optimizer_state` and `first_updates` are the engine's. The folder appears under its name only when
/// everything in it is on the disk. Returns its path. For one rank.
std::filesystem::path save_checkpoint(const std::filesystem::path& checkpoints_folder, const Model& model,
                                      const NamedTensors& optimizer_state, const std::vector<int64_t>& first_updates,
                                      const TrainProgress& progress, const nlohmann::json& options, int64_t keep);

/// `resume` names a checkpoint folder, a run folder or a run in `runs_folder`; the newest checkpoint there. Throws
/// Error.
std::filesystem::path find_checkpoint(const std::string& resume, const std::filesystem::path& runs_folder);

/// Has this run saved any?
bool has_checkpoint(const std::filesystem::path& run_folder);

/// A checkpoint that was read and found whole.
class Checkpoint {
 public:
  /// Throws Error saying which file is missing or damaged and how.
  explicit Checkpoint(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& options() const { return state_.at("options"); }
  TrainProgress progress() const;

  /// Throws Error when the checkpoint belongs to another model, naming both and the first difference.
  void load_weights(Model& model) const;
  /// Throws Error when it belongs to another optimizer.
  void restore(Engine& engine) const;

 private:
  std::filesystem::path folder_;
  nlohmann::json state_;
  std::unique_ptr<SafetensorsFile> weights_, optimizer_;
};

/// Weights and buffers alone, for others to use.
void save_weights(const std::filesystem::path& path, const Model& model);

/// The reverse, for weights from anywhere: every tensor of the model has to be in the file with its name and shape (of
/// any floating type); what else is there is left alone and returned. Throws Error naming the first difference.
std::vector<std::string> load_weights(const std::filesystem::path& path, Model& model);

/// SHA-256 over names, types, shapes and values of all parameters and buffers.
std::string weights_sha256(const torch::nn::Module& model);

}  // namespace tutti
