#include "cli/export_command.h"

#include <fmt/format.h>

#include <memory>

#include "base/files.h"
#include "cli/trained_arguments.h"
#include "inference/torchscript.h"
#include "train/checkpoint.h"
#include "tutti/error.h"

namespace tutti {

std::function<int()> add_export_command(CLI::App& program) {
  struct Arguments {
    std::unique_ptr<TrainedArguments> trained;
    std::string safetensors, torchscript;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("export", "write trained weights for other programs");
  arguments->trained = std::make_unique<TrainedArguments>(*command);
  command->add_option("--safetensors", arguments->safetensors,
                      "the weights, under the names of torchvision and Hugging Face, to this file");
  command->add_option("--torchscript", arguments->torchscript,
                      "network and weights, for torch.jit.load(), to this file; not of masked text");
  command->footer(
      "Examples:\n"
      "  tutti export first --safetensors first.safetensors\n"
      "  tutti export first/best --torchscript first.pt\n"
      "  python3 -c 'import torch; print(torch.jit.load(\"first.pt\")(torch.zeros(1, 1, 28, 28)))'");
  return [arguments] {
    if (arguments->safetensors.empty() && arguments->torchscript.empty())
      throw UsageError("say what to write: --safetensors FILE or --torchscript FILE, or both");
    const TrainedModel trained = arguments->trained->open(/*on_cpu=*/true);
    const auto told = [&](const std::string& file) {
      fmt::print("{} of {}: {}, {}\n", trained.options.model, trained.file.string(), file,
                 readable_bytes(std::filesystem::file_size(file)));
    };
    // First what may be refused.
    if (!arguments->torchscript.empty()) {
      save_torchscript(arguments->torchscript, trained);
      told(arguments->torchscript);
    }
    if (!arguments->safetensors.empty()) {
      save_weights(arguments->safetensors, *trained.model);
      told(arguments->safetensors);
    }
    return 0;
  };
}

}  // namespace tutti
