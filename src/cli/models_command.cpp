#include "cli/models_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/json_output.h"
#include "model/cost.h"

namespace tutti {
namespace {

struct ModelsArguments {
  std::vector<std::string> names;
  int64_t width = 0;
  int64_t depth = 0;
  bool json = false;
};

struct Row {
  std::string name;
  SampleTraits data;
  ModelCost cost;
};

Row look_at(const std::string& name, const ModelsArguments& arguments) {
  ModelOptions options;
  options.data = natural_data(name);
  options.width = arguments.width;
  options.depth = arguments.depth;
  options.random_weights = false;
  return {name, options.data, measure_cost(*make_model(name, options), options.data)};
}

nlohmann::json to_json(const Row& row) {
  return {{"name", row.name},
          {"data", describe(row.data)},
          {"parameters", row.cost.parameters},
          {"tensors", row.cost.tensors},
          {"gradient_bytes", row.cost.gradient_bytes},
          {"forward_flop", row.cost.forward_flop},
          {"activation_bytes", row.cost.activation_bytes}};
}

/// "11,689,512"
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

int run(const ModelsArguments& arguments) {
  nlohmann::json list = nlohmann::json::array();
  const std::string layout = "{:<12} {:<52} {:>12} {:>8} {:>14} {:>15} {:>15}\n";
  if (!arguments.json)
    fmt::print(fmt::runtime(layout), "model", "data", "parameters", "tensors", "gradients", "forward/sample",
               "memory/sample");
  for (const std::string& name : arguments.names.empty() ? model_names() : arguments.names) {
    const Row row = look_at(name, arguments);
    list.push_back(to_json(row));
    if (arguments.json) continue;
    fmt::print(fmt::runtime(layout), row.name, describe(row.data), with_commas(row.cost.parameters), row.cost.tensors,
               fmt::format("{:.1f} MB", static_cast<double>(row.cost.gradient_bytes) * 1e-6),
               fmt::format("{:.3f} GFLOP", static_cast<double>(row.cost.forward_flop) * 1e-9),
               fmt::format("{:.1f} MB", static_cast<double>(row.cost.activation_bytes) * 1e-6));
  }
  if (arguments.json) print_json(list);
  return 0;
}

}  // namespace

std::function<int()> add_models_command(CLI::App& program) {
  auto arguments = std::make_shared<ModelsArguments>();
  CLI::App* command = program.add_subcommand("models", "list the models and what each asks for");
  command->add_option("names", arguments->names, "only these")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--width", arguments->width, "as in `tutti train`");
  command->add_option("--depth", arguments->depth, "as in `tutti train`");
  add_json_flag(*command, arguments->json);
  command->footer(
      "With the data each was published with; `tutti train` makes it for the data it gets.\n"
      "forward/sample: convolutions and matrix products, a multiplication and an addition being two; backward takes "
      "about twice as much.\n"
      "memory/sample: what forward keeps for backward, in float32.");
  return [arguments] { return run(*arguments); };
}

}  // namespace tutti
