#include "cli/eval_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/trained_arguments.h"
#include "inference/trained_evaluation.h"
#include "train/console.h"

namespace tutti {

std::function<int()> add_eval_command(CLI::App& program) {
  struct Arguments {
    std::unique_ptr<TrainedArguments> trained;
    bool json = false;
    std::string csv_file;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("eval", "test trained weights: all metrics, mistakes, scores by class");
  arguments->trained = std::make_unique<TrainedArguments>(*command);
  command->add_flag("--json", arguments->json, "as JSON");
  command->add_option("--csv", arguments->csv_file, "write scores and counts by class to this file");
  command->footer(
      "Examples:\n"
      "  tutti eval first                                             the run's final weights, on its own test data\n"
      "  tutti eval first/best --data mnist                           its best ones, on other data\n"
      "  tutti eval resnet18.safetensors --model resnet18 --data …    weights of others");
  return [arguments] {
    TrainedModel trained = arguments->trained->open();
    Console console(!arguments->json, Verbosity::usual);
    const TrainedEvaluation result = evaluate_trained(trained, [&console](int64_t done, int64_t all) {
      console.progress(fmt::format("testing: {}/{} batches", done, all));
    });
    if (!arguments->csv_file.empty()) write_file_atomically(arguments->csv_file, csv(result));
    if (arguments->json)
      fmt::print("{}\n", to_json(trained, result).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      console.line(describe(trained, result));
    return 0;
  };
}

}  // namespace tutti
