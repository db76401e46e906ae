#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/safetensors.h"
#include "model/model.h"
#include "train/course.h"
#include "tutti/engine.h"

namespace tutti {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// What a checkpoint holds. Randomness is derived from seed, step and rank, so the seed is all there is to keep.
struct CheckpointContent {
  NamedTensors weights;                // see weights_of()
  NamedTensors optimizer_state;        // the engine's, with first_updates
  std::vector<int64_t> first_updates;  // of each parameter
  TrainProgress progress;
  int64_t first_step_samples = 0;                     // see Course
  nlohmann::json options = nlohmann::json::object();  // as records have them
  std::vector<NamedTensors> left_out = {};            // by rank: what a compressing wire format still owes
  nlohmann::json plan = {};                           // the plan that this belongs to, with its profile; null: none
  nlohmann::json best_test = {};                      // see BestTest; null: none
  nlohmann::json epoch_end = {};  // an epoch that is over, but for its test and its record; null: none
};

/// A checkpoint is a folder: model.safetensors (weights and buffers), optimizer.safetensors, left-out-RANK.safetensors
/// where a wire format leaves gradients for later, state.json (the rest, checksums of the other files). The folder
/// appears under its name only when everything in it is on the disk. `from` is the checkpoint that this one continues,
/// empty for none: those in the run's folder that do not lead there are set aside. Older ones than the newest `keep`
/// are removed. For one rank. Throws Error, and leaves everything as it was.
struct SavedCheckpoint {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> set_aside;
};
SavedCheckpoint save_checkpoint(const std::filesystem::path& run_folder, const CheckpointContent& content,
                                const std::filesystem::path& from, int64_t keep);

/// A checkpoint that was read and found whole.
class Checkpoint {
 public:
  /// Throws Error saying which file is missing or damaged and how.
  explicit Checkpoint(const std::filesystem::path& folder, int rank = 0);

  const std::filesystem::path& folder() const { return folder_; }
  const nlohmann::json& options() const { return state_.at("options"); }
  TrainProgress progress() const;
  /// Samples in a step when the run began; see Course.
  int64_t first_step_samples() const;
  /// As it was saved; null: nothing was.
  const nlohmann::json& plan() const { return state_.at("plan"); }
  const nlohmann::json& epoch_end() const { return state_.at("epoch_end"); }
  const nlohmann::json& best_test() const { return state_.at("best_test"); }

  /// Throws Error when the checkpoint belongs to another model, naming both and the first difference.
  void load_weights(Model& model) const;
  /// Throws Error when it belongs to another optimizer.
  void restore(Engine& engine) const;
  /// What this rank left out of its messages, where it was saved. Not for another number of ranks.
  bool has_left_out() const { return left_out_ != nullptr; }
  void restore_left_out(Engine& engine) const;

 private:
  std::filesystem::path folder_;
  nlohmann::json state_;
  std::unique_ptr<SafetensorsFile> weights_, optimizer_, left_out_;
};

/// Parameters, then buffers, on the CPU and row by row; the model's own memory where it is like that.
NamedTensors weights_of(const torch::nn::Module& model);

/// Parameters, then buffers: the model's own.
std::vector<NamedTensor> named_tensors(const torch::nn::Module& model);

/// A tensor of a file, copied. Throws Error for a type that torch does not have.
torch::Tensor tensor_of(const NamedArray& array);

inline constexpr const char* kWeightsFile = "model.safetensors";  // of a run, a checkpoint, …
inline constexpr const char* kBestFolder = "best";                // of a run: with the weights of its best test

/// Weights and buffers alone, for others to use. `facts` stand in the file's header.
void save_weights(const std::filesystem::path& path, const NamedTensors& weights,
                  const std::map<std::string, std::string>& facts = {});
void save_weights(const std::filesystem::path& path, const Model& model);

/// SHA-256 over names, types, shapes and values of all parameters and buffers.
std::string weights_sha256(const torch::nn::Module& model);

}  // namespace tutti
