// Compares a model with what another library computed: parity_check CASE.safetensors [--device cuda] [--save WEIGHTS].
//
// The case, made by export.py, holds weights, a batch, and outputs, loss and gradients to expect; its metadata say
// which model they are for. Prints one JSON object; exits with 1 if anything differs by more than the tolerance. --save
// writes the weights as Tutti saves them, for import.py.

#include <ATen/Context.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/safetensors.h"
#include "base/torch_compat.h"
#include "model/model.h"
#include "train/checkpoint.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-4;
// A gradient this small beside all of them together is rounding: attention's bias of the keys, for instance, changes
// nothing. It has to be as small here, and is compared no further.
constexpr double kVanishing = 1e-6;

struct Arguments {
  std::string file;
  std::string save;
  torch::Device device = torch::kCPU;
};

/// The case's tensors by name.
class Case {
 public:
  explicit Case(const Arguments& arguments) : file_(arguments.file), device_(arguments.device) {}

  json description() const { return json::parse(file_.metadata().at("case")); }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  torch::Tensor operator[](const std::string& name) const {
    const NamedArray* const array = file_.find(name);
    if (array == nullptr) throw Error("the case has no '{}'", name);
    const auto type = array->dtype == "F64" ? torch::kDouble : array->dtype == "I64" ? torch::kLong : torch::kFloat;
    torch::Tensor tensor = torch::empty(array->shape, type);
    if (tensor.nbytes() != array->bytes) throw Error("'{}' is {}, which is not read here", name, array->dtype);
    std::memcpy(tensor.data_ptr(), array->data, array->bytes);
    return tensor.to(device_);
  }
  std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> found;
    for (const NamedArray& array : file_.arrays())
      if (array.name.rfind(folder, 0) == 0) found.insert(array.name.substr(folder.size()));
    return found;
  }

 private:
  SafetensorsFile file_;
  torch::Device device_;
};

SampleTraits traits_of(const json& data) {
  const std::string kind = data.at("kind");
  return {kind == "images"      ? SampleKind::images
          : kind == "sentences" ? SampleKind::sentences
                                : SampleKind::masked_text,
          data.at("shape").get<std::vector<int64_t>>(), data.value("classes", int64_t{0}),
          data.value("vocabulary", int64_t{0}), data.value("masked", int64_t{0})};
}

double norm_of(const torch::Tensor& tensor) { return tensor.to(torch::kDouble).norm().item<double>(); }

double relative_error(const torch::Tensor& actual, const torch::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) throw Error("shapes differ");
  const double error = norm_of(actual.to(torch::kDouble) - expected.to(torch::kDouble)) / norm_of(expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

std::shared_ptr<Model> load_model(const Case& expected, const Arguments& arguments) {
  const json description = expected.description();
  ModelOptions options;
  options.data = traits_of(description.at("data"));
  options.width = description.value("width", int64_t{0});
  options.depth = description.value("depth", int64_t{0});
  options.random_weights = false;
  auto model = make_model(description.at("model"), options);
  model->to(arguments.device);
  std::set<std::string> missing = expected.names("weight/");
  const torch::NoGradGuard no_grad;
  const auto load = [&](const auto& tensors) {
    for (auto& item : tensors) {
      const torch::Tensor value = expected["weight/" + item.key()];
      if (value.is_floating_point()) item.value().set_data(item.value().to(value.scalar_type()));
      item.value().copy_(value);
      missing.erase(item.key());
    }
  };
  load(model->named_parameters());
  load(model->named_buffers());
  if (!missing.empty()) throw Error("{} weights have no place, '{}' among them", missing.size(), *missing.begin());
  model->train(description.at("mode") == "train");
  return model;
}

json compare_gradients(const Model& model, const Case& expected, double& worst) {
  double all = 0;
  for (const std::string& name : expected.names("gradient/")) all += std::pow(norm_of(expected["gradient/" + name]), 2);
  all = std::sqrt(all);
  std::string worst_name;
  int64_t vanishing = 0;
  for (const auto& parameter : model.named_parameters()) {
    const torch::Tensor gradient = expected["gradient/" + parameter.key()];
    double error = 0;
    if (norm_of(gradient) < kVanishing * all) {
      ++vanishing;
      if (norm_of(parameter.value().grad()) > 10 * kVanishing * all) error = 1;
    } else {
      error = relative_error(parameter.value().grad(), gradient);
    }
    if (error > worst) {
      worst = error;
      worst_name = parameter.key();
    }
  }
  return {{"count", expected.names("gradient/").size()},
          {"vanishing", vanishing},
          {"worst", worst},
          {"worst_name", worst_name}};
}

int run(const Arguments& arguments) {
  allow_tf32(false);
  at::globalContext().setDeterministicCuDNN(true);
  const Case expected(arguments);
  const auto model = load_model(expected, arguments);
  if (!arguments.save.empty()) save_weights(arguments.save, *model);

  Batch batch;
  for (std::size_t i = 0; expected.has(fmt::format("input/{}", i)); ++i)
    batch.inputs.push_back(expected[fmt::format("input/{}", i)]);
  batch.target = expected["target"];
  batch.size = batch.target.size(0);

  double worst_output = 0;
  {
    // A second forward in training mode: batch statistics are the same, and averages do not matter here.
    const torch::NoGradGuard no_grad;
    const auto outputs = model->outputs(batch);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      worst_output = std::max(worst_output, relative_error(outputs[i], expected[fmt::format("output/{}", i)]));
  }
  const torch::Tensor loss = model->loss(batch);
  loss.backward();
  const double loss_error = relative_error(loss.detach(), expected["loss"]);
  double worst_gradient = 0;
  const json gradients = compare_gradients(*model, expected, worst_gradient);
  const bool passed = loss_error <= kTolerance && worst_output <= kTolerance && worst_gradient <= kTolerance;
  fmt::print("{}\n", json({{"model", model->model_name()},
                           {"loss", loss.item<double>()},
                           {"loss_error", loss_error},
                           {"output_error", worst_output},
                           {"gradients", gradients},
                           {"tolerance", kTolerance},
                           {"passed", passed}})
                         .dump());
  return passed ? 0 : 1;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--device" && i + 1 < argc)
      arguments.device = torch::Device(argv[++i]);
    else if (word == "--save" && i + 1 < argc)
      arguments.save = argv[++i];
    else
      arguments.file = word;
  }
  if (arguments.file.empty()) throw UsageError("usage: parity_check CASE.safetensors [--device cuda] [--save WEIGHTS]");
  return arguments;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  try {
    return tutti::run(tutti::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity_check: {}\n", error.what());
    return 2;
  }
}
