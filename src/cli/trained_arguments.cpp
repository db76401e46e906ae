#include "cli/trained_arguments.h"

#include <vector>

#include "base/names.h"
#include "cli/option_arguments.h"
#include "cli/rank_arguments.h"
#include "inference/trained_model.h"
#include "options/option_table.h"
#include "train/options.h"
#include "train/rank_setup.h"

namespace tutti {

TrainedArguments::TrainedArguments(CLI::App& command) : command_(command) {
  command
      .add_option("RUN", run_,
                  "a run's name or folder (its final weights, else its newest checkpoint), RUN/best, a checkpoint's "
                  "folder, or a .safetensors file")
      ->required();
  static const std::vector<std::string> shared = {
      "plugin",    "model",   "width",      "depth",        "data",       "data-path",  "train-size",
      "test-size", "tokens",  "vocabulary", "val-fraction", "image-size", "image-mean", "image-std",
      "label",     "threads", "precision",  "runs",         "eval-batch", "device",     "workers"};
  std::vector<TrainOption> options;
  for (TrainOption& option : train_option_table(options_, known_names())) {
    if (!contains(shared, option.name)) continue;
    option.group = "As in `tutti train`; unset: what the run was trained with";
    options.push_back(option);
  }
  add_options(command, options);
}

TrainedModel TrainedArguments::open(bool on_cpu) const {
  const auto is_given = [this](const std::string& name) {
    const CLI::Option* const option = name.empty() ? nullptr : command_.get_option_no_throw("--" + name);
    return option != nullptr && option->count() > 0;
  };
  const TrainedWeights weights = find_trained(run_, options_.runs_folder);
  TrainOptions options = options_of(weights, options_, is_given);
  if (on_cpu) options.device = "cpu";
  set_compute_threads(options.threads > 0 ? options.threads : available_cores());
  return open_trained(weights.file, options);
}

}  // namespace tutti
