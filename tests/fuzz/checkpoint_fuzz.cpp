// A checkpoint's folder goes in: state.json and both files of tensors. What is read becomes options, progress and the
// weights of a model.
#include <torch/nn/modules/linear.h>

#include "base/sha256.h"
#include "fuzz/command.h"
#include "options/option_table.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"
#include "train/weights_file.h"

namespace tutti::fuzz {
namespace {

class FewWeights : public Model {
 public:
  FewWeights() : Model("mnist-cnn") { register_module("fc", torch::nn::Linear(3, 2)); }
  std::vector<torch::Tensor> outputs(const Batch&) override { return {}; }
  torch::Tensor loss(const Batch&) override { return {}; }
  EvalSums count(const Batch&) override { return {}; }
};

Model& few_weights() {
  static FewWeights model;
  return model;
}

/// The state with right checksums, but for its own: few mutations would get past them.
void mend_checksums(const std::filesystem::path& folder) {
  nlohmann::json state = nlohmann::json::parse(read_file(folder / "state.json"), nullptr, false);
  if (!state.is_object() || !state.contains("sha256") || !state["sha256"].is_object()) return;
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    state["sha256"][name] = sha256_of_file(folder / name);
  state["sha256"].erase(kStateFile);
  std::ofstream(folder / "state.json") << state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

static std::string fuzz_checkpoint(std::string_view input) {
  write_input(input, {"run/checkpoints/step-0000000001/state.json", "run/checkpoints/step-0000000001/model.safetensors",
                      "run/checkpoints/step-0000000001/optimizer.safetensors"});
  const std::filesystem::path folder = command_folder() / "run/checkpoints/step-0000000001";
  const std::string as_it_is = outcome([&] { const Checkpoint read(folder); });
  // As deep as it is, it would be read by the mending too.
  if (as_it_is.find("deep") == std::string::npos) mend_checksums(folder);
  return as_it_is + outcome([&] {
           const Checkpoint read(find_checkpoints((command_folder() / "run").string(), command_folder()).folders[0]);
           read.progress();
           read_options(read.options());
           read.load_weights(few_weights());
         }) +
         outcome([&] { load_weights(folder / "model.safetensors", few_weights()); });
}

static std::vector<std::string> checkpoint_seeds() {
  const test::TempFolder folder;
  TrainOptions options;
  CheckpointContent content;
  content.weights = weights_of(few_weights());
  content.optimizer_state = {{"momentum", torch::zeros({8})}};
  content.first_updates = {0, 1};
  content.progress = {1, 0, 64};
  content.first_step_samples = 64;
  content.options = describe_options(options);
  const std::filesystem::path saved = save_checkpoint(folder.path(), content, {}, 1).folder;
  const std::string all = read_file(saved / "state.json") + std::string(kNextFile) +
                          read_file(saved / "model.safetensors") + std::string(kNextFile) +
                          read_file(saved / "optimizer.safetensors");
  return {all,           "\"dtype\":\"BF16\"",  "\"shape\":[0,9999999999]", "\"data_offsets\":[0,24]",
          "\"step\":-1", "\"options\":[]",      "[[[[[[[[[[[[[[[[[[[[",     "1e99",
          "null",        "\"first_updates\":{}"};
}

static const Target kCheckpoint("checkpoint", fuzz_checkpoint, checkpoint_seeds);

}  // namespace tutti::fuzz
