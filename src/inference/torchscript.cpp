#include "inference/torchscript.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "model/example_batch.h"
#include "model/ops/plain.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kTracedBatch = 2, kOtherBatch = 3;
constexpr double kAgreement = 1e-4;  // of the largest output

/// The same tree of parameters and buffers, which are the model's own. `path` makes the names of types.
torch::jit::Module mirror_of(const torch::nn::Module& module, const std::string& path,
                             const std::shared_ptr<torch::jit::CompilationUnit>& unit) {
  torch::jit::Module mirror(c10::QualifiedName("__torch__." + path), unit);
  mirror.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& parameter : module.named_parameters(/*recurse=*/false))
    mirror.register_parameter(parameter.key(), parameter.value(), /*is_buffer=*/false);
  for (const auto& buffer : module.named_buffers(/*recurse=*/false))
    mirror.register_buffer(buffer.key(), buffer.value());
  for (const auto& child : module.named_children())
    mirror.register_module(child.key(), mirror_of(*child.value(), path + "_" + child.key(), unit));
  return mirror;
}

/// "mnist-cnn" as the name of a type.
std::string type_name_of(std::string model) {
  for (char& c : model)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return "Tutti_" + model;
}

torch::Tensor first_output(Model& model, const torch::Tensor& input) {
  Batch batch;
  batch.inputs = {input};
  batch.size = input.size(0);
  return model.outputs(batch).at(0);
}

/// Follows one forward through the model.
void add_forward(torch::jit::Module& mirror, Model& model, const torch::Tensor& input) {
  const auto run = [&model](torch::jit::Stack inputs) -> torch::jit::Stack {
    return {first_output(model, inputs.at(0).toTensor())};
  };
  const auto no_names = [](const torch::Tensor&) { return std::string(); };
  const auto traced =
      torch::jit::tracer::trace({input}, run, no_names, /*strict=*/true, /*force_outplace=*/false, &mirror, {"x"});
  const c10::QualifiedName name(*mirror.type()->name(), "forward");
  mirror.type()->addMethod(mirror._ivalue()->compilation_unit()->create_function(name, traced.first->graph));
}

void require_same(Model& model, const std::string& content, const torch::Tensor& input) {
  std::istringstream stream(content);
  torch::jit::Module loaded = torch::jit::load(stream);
  loaded.eval();
  const torch::Tensor found = loaded.forward({input}).toTensor(), wanted = first_output(model, input);
  const double error = (found - wanted).abs().max().item<double>();
  if (found.sizes() != wanted.sizes() || !(error <= kAgreement * std::max(1.0, wanted.abs().max().item<double>())))
    throw Error("model '{}' cannot be written as TorchScript: what was traced computes something else (by {:g})",
                model.model_name(), error);
}

}  // namespace

void save_torchscript(const std::filesystem::path& file, const TrainedModel& trained) {
  Model& model = *trained.model;
  const SampleTraits traits = trained.traits();
  if (traits.kind == SampleKind::masked_text)
    throw UsageError(
        "--torchscript: model '{}' has several inputs, for which there is no such file; --safetensors writes its "
        "weights under Hugging Face's names",
        model.model_name());
  const torch::NoGradGuard no_grad;
  std::ostringstream stream;
  {
    const PlainOperations plain;
    auto mirror = mirror_of(model, type_name_of(model.model_name()), std::make_shared<torch::jit::CompilationUnit>());
    add_forward(mirror, model, example_batch(traits, kTracedBatch).inputs[0]);
    mirror.save(stream);
  }
  const std::string content = stream.str();
  require_same(model, content, example_batch(traits, kOtherBatch).inputs[0]);
  write_file_atomically(file, content);
}

}  // namespace tutti
