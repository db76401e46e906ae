// What is written as TorchScript computes what the model computes; the exporter compares them itself, so that here it
// is enough that it does not refuse, and that Python's names are there.

#include "inference/torchscript.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <set>

#include "inference/small_trained_model.h"
#include "model/example_batch.h"
#include "tutti/error.h"

namespace tutti {
namespace {

TEST(TorchScript, ComputesWhatTheModelComputesForBatchesOfAnySize) {
  const FolderForWeights folder;
  const auto file = folder.path() / "model.pt";
  for (const char* const name : {"mnist-cnn", "resnet18", "unet", "transformer"}) {
    const std::string model = name;
    const bool takes_digits = model == "mnist-cnn" || model == "resnet18";
    const TrainedModel trained = untrained(folder, small_run(model, takes_digits ? "digits" : "synthetic"));
    save_torchscript(file, trained);
    torch::jit::Module loaded = torch::jit::load(file.string());
    const torch::NoGradGuard no_grad;
    const Batch batch = example_batch(trained.traits(), 5);
    EXPECT_TRUE(
        torch::allclose(loaded.forward({batch.inputs[0]}).toTensor(), trained.model->outputs(batch)[0], 1e-3, 1e-4))
        << model;
    std::set<std::string> names;
    for (const auto& item : trained.model->named_parameters()) names.insert(item.key());
    for (const auto& item : loaded.named_parameters()) names.erase(item.name);
    EXPECT_TRUE(names.empty()) << model << " lacks " << *names.begin();
  }
}

TEST(TorchScript, IsRefusedForMaskedTextBeforeAnythingIsWritten) {
  const FolderForWeights folder;
  const TrainedModel trained = untrained(folder, small_run("bert-base", "synthetic"));
  EXPECT_THROW(save_torchscript(folder.path() / "bert.pt", trained), UsageError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "bert.pt"));
}

}  // namespace
}  // namespace tutti
