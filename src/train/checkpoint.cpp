#include "train/checkpoint.h"

#include <cstring>
#include <map>

#include "base/files.h"
#include "base/sha256.h"
#include "train/checkpoint_folder.h"
#include "tutti/error.h"
#include "tutti/records.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kOptimizerFile = "optimizer.safetensors";

struct TypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {{torch::kFloat32, "F32"},   {torch::kFloat64, "F64"}, {torch::kFloat16, "F16"},
                                   {torch::kBFloat16, "BF16"}, {torch::kInt64, "I64"},   {torch::kInt32, "I32"},
                                   {torch::kUInt8, "U8"},      {torch::kInt8, "I8"},     {torch::kBool, "BOOL"}};

std::string type_name(torch::ScalarType type) {
  for (const TypeName& entry : kTypeNames)
    if (entry.type == type) return entry.name;
  throw Error("tensors of type {} cannot be saved", c10::toString(type));
}

torch::ScalarType type_of(const std::string& name) {
  for (const TypeName& entry : kTypeNames)
    if (name == entry.name) return entry.type;
  throw Error("tensors of type {} cannot be loaded", name);
}

/// Parameters, then buffers; on the CPU and contiguous when `copy`, else the model's own.
NamedTensors tensors_of(const torch::nn::Module& model, bool copy) {
  NamedTensors tensors;
  for (const auto& parameter : model.named_parameters())
    tensors.emplace_back(parameter.key(), parameter.value().detach());
  for (const auto& buffer : model.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value().detach());
  if (copy)
    for (auto& [name, tensor] : tensors) tensor = tensor.to(torch::kCPU).contiguous();
  return tensors;
}

std::string write_tensors(const fs::path& path, const NamedTensors& tensors,
                          std::map<std::string, std::string> facts = {}) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : tensors)
    arrays.push_back({name, type_name(tensor.scalar_type()), tensor.sizes().vec(), tensor.data_ptr(), tensor.nbytes()});
  facts["format"] = "pt";  // as PyTorch has them: some readers ask
  return write_safetensors(path, arrays, facts);
}

std::string shape_text(const std::vector<int64_t>& shape) { return nlohmann::json(shape).dump(); }

std::string left_out_file(int rank) { return fmt::format("left-out-{}.safetensors", rank); }

}  // namespace

std::vector<NamedTensor> named_tensors(const torch::nn::Module& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : tensors_of(model, false)) tensors.push_back({name, tensor});
  return tensors;
}

torch::Tensor tensor_of(const NamedArray& array) {
  torch::Tensor tensor = torch::empty(array.shape, type_of(array.dtype));
  std::memcpy(tensor.data_ptr(), array.data, array.bytes);
  return tensor;
}

NamedTensors weights_of(const torch::nn::Module& model) { return tensors_of(model, true); }

SavedCheckpoint save_checkpoint(const fs::path& run_folder, const CheckpointContent& content, const fs::path& from,
                                int64_t keep) {
  const int64_t step = content.progress.step;
  const fs::path temporary = unfinished_checkpoint(run_folder, step);
  SavedCheckpoint saved;
  remove_tree(temporary);
  try {
    make_folders(temporary, Readers::owner);
    nlohmann::json state = {{"format", kFormat},
                            {"step", step},
                            {"epoch", content.progress.epoch},
                            {"samples_in_epoch", content.progress.samples_in_epoch},
                            {"first_step_samples", content.first_step_samples},
                            {"first_updates", content.first_updates},
                            {"options", content.options},
                            {"plan", content.plan},
                            {"epoch_end", content.epoch_end},
                            {"best_test", content.best_test}};
    const auto write = [&](const std::string& file, const NamedTensors& tensors) {
      state["sha256"][file] = write_tensors(temporary / file, tensors);
    };
    write(kWeightsFile, content.weights);
    write(kOptimizerFile, content.optimizer_state);
    for (std::size_t rank = 0; rank < content.left_out.size(); ++rank)
      write(left_out_file(static_cast<int>(rank)), content.left_out[rank]);
    write_file_atomically(temporary / kStateFile, state_text(state), Readers::owner);
    saved.set_aside = set_others_aside(run_folder, from);
    saved.folder = finish_checkpoint(run_folder, step);
  } catch (const std::exception& error) {
    remove_tree(temporary);
    throw Error("cannot save a checkpoint: {}", error.what());
  }
  keep_newest(run_folder, keep);
  return saved;
}

Checkpoint::Checkpoint(const fs::path& folder, int rank) : folder_(folder) {
  try {
    try {
      state_ = read_state(folder);
      if (state_.at("format") != kFormat)
        throw Error("{} has format {}, this Tutti reads format {}", (folder / kStateFile).string(),
                    state_.at("format").dump(), kFormat);
      for (const char* later : {"plan", "epoch_end", "best_test"})
        state_.emplace(later, nullptr);  // older ones have none
      if (!options().is_object() || first_step_samples() < 1)
        throw Error("{} is not as it was written", (folder / kStateFile).string());
      progress();
    } catch (const nlohmann::json::exception& error) {
      throw Error("{}: {}", (folder / kStateFile).string(), error.what());
    }
    const auto open = [&](const std::string& file) {
      auto read = std::make_unique<SafetensorsFile>(folder / file);
      const std::string expected = state_.at("sha256").at(file);
      if (read->sha256() != expected)
        throw Error("{} has SHA-256 {}, but {} was written", (folder / file).string(), read->sha256(), expected);
      return read;
    };
    weights_ = open(kWeightsFile);
    optimizer_ = open(kOptimizerFile);
    if (state_.at("sha256").contains(left_out_file(rank))) left_out_ = open(left_out_file(rank));
  } catch (const std::exception& error) {
    throw Error(
        "the checkpoint {} is damaged: {}.\nResume from another one (checkpoints/step-* of the run), or start anew.",
        folder.string(), error.what());
  }
}

int64_t Checkpoint::first_step_samples() const {
  if (state_.contains("first_step_samples")) return state_.at("first_step_samples").get<int64_t>();
  const RunConfig config = options().get<RunConfig>();  // of a version in which the size of a step could not change
  return config.batch * config.accumulate * config.ranks;
}

TrainProgress Checkpoint::progress() const {
  return {state_.at("step").get<int64_t>(), state_.at("epoch").get<int64_t>(),
          state_.at("samples_in_epoch").get<int64_t>()};
}

void Checkpoint::load_weights(Model& model) const {
  const std::string owner = options().get<RunConfig>().model;
  const auto refuse = [&](const std::string& difference) {
    throw Error("the checkpoint {} belongs to another model: it was made by '{}', this is '{}' ({})", folder_.string(),
                owner, model.model_name(), difference);
  };
  const NamedTensors tensors = tensors_of(model, false);
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = weights_->find(name);
    if (array == nullptr) refuse(fmt::format("it has no '{}'", name));
    if (array->shape != tensor.sizes().vec() || array->dtype != type_name(tensor.scalar_type()))
      refuse(fmt::format("'{}' is {} {} there and {} {} here", name, array->dtype, shape_text(array->shape),
                         type_name(tensor.scalar_type()), shape_text(tensor.sizes().vec())));
  }
  if (weights_->arrays().size() != tensors.size())
    refuse(fmt::format("it has {} tensors, this has {}", weights_->arrays().size(), tensors.size()));
  if (owner != model.model_name()) refuse("same tensors, other name");
  const torch::NoGradGuard no_grad;
  for (auto [name, tensor] : tensors) tensor.copy_(tensor_of(*weights_->find(name)));
}

void Checkpoint::restore(Engine& engine) const {
  auto first_updates = state_.at("first_updates").get<std::vector<int64_t>>();
  if (first_updates.size() != engine.first_updates().size())
    throw Error(
        "the checkpoint {} was made while {} tensors were trained, and now {} are: resume with the same --freeze",
        folder_.string(), first_updates.size(), engine.first_updates().size());
  engine.restore(progress().step, std::move(first_updates), [&](const std::string& name) {
    const NamedArray* array = optimizer_->find(name);
    if (array == nullptr)
      throw Error(
          "the checkpoint {} was made with optimizer '{}' and has no '{}': resume with the same --optimizer, "
          "--momentum and --freeze",
          folder_.string(), options().get<RunConfig>().optimizer, name);
    return tensor_of(*array);
  });
}

void Checkpoint::restore_left_out(Engine& engine) const {
  engine.restore_left_out([&](const std::string& name) {
    const NamedArray* const array = left_out_->find(name);
    if (array == nullptr) throw Error("the checkpoint {} has no '{}' of this rank", folder_.string(), name);
    return tensor_of(*array);
  });
}

void save_weights(const fs::path& path, const NamedTensors& weights, const std::map<std::string, std::string>& facts) {
  write_tensors(path, weights, facts);
}

void save_weights(const fs::path& path, const Model& model) { save_weights(path, weights_of(model)); }

std::string weights_sha256(const torch::nn::Module& model) {
  Sha256 hash;
  for (const auto& [name, tensor] : tensors_of(model, true)) {
    hash.update(fmt::format("{} {} {}\n", name, type_name(tensor.scalar_type()), shape_text(tensor.sizes().vec())));
    hash.update(tensor.data_ptr(), tensor.nbytes());
  }
  return hash.hex();
}

}  // namespace tutti
