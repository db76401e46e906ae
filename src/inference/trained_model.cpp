#include "inference/trained_model.h"

#include <nlohmann/json.hpp>

#include "base/torch_compat.h"
#include "options/option_table.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "train/checkpoint_folder.h"
#include "train/options.h"
#include "train/rank_setup.h"
#include "train/weights_file.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// From the last of these: a resumed run may have got others.
std::optional<TrainOptions> options_in_records(const fs::path& file) {
  std::optional<TrainOptions> options;
  for (RecordReader reader(file); reader.next();)
    if (reader.is<RunRecord>()) options = read_options(reader.as<RunRecord>().config);
  return options;
}

/// A checkpoint tells its own options, a run's folder has records; of `best` they lie one folder up.
std::optional<TrainOptions> options_beside(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (fs::is_regular_file(folder / kStateFile)) return saved_options({{folder}, true});
  for (const fs::path& place : {folder, folder / ".."})
    if (fs::is_regular_file(place / kRecordsFile)) return options_in_records(place / kRecordsFile);
  return std::nullopt;
}

}  // namespace

TrainedWeights find_trained(const std::string& given, const fs::path& runs_folder) {
  const fs::path file = find_weights(given, runs_folder);
  return {file, options_beside(file)};
}

TrainOptions options_of(const TrainedWeights& weights, const TrainOptions& given,
                        const std::function<bool(const std::string&)>& is_given) {
  TrainOptions options = given;
  if (weights.had) {
    take_over(options, *weights.had, is_given);
    if (!is_given("threads")) options.threads = given.threads;  // the run's were those of one of several ranks
    if (options.data.name != weights.had->data.name) options.data = given.data;
  } else if (!is_given("model")) {
    throw UsageError("{} lies in no run's folder: say with --model what it was made for, and with --data which samples",
                     weights.file.string());
  }
  check_values(options, known_names());
  return options;
}

TrainedModel open_trained(const fs::path& file, const TrainOptions& options) {
  TrainedModel trained;
  trained.options = options;
  trained.file = file;
  DataOptions data = options.data;
  if (!data.traits) data.traits = natural_data(options.model);  // what `synthetic` imitates
  trained.data = open_data(data);
  ModelOptions model_options = options.model_options;
  model_options.data = trained.traits();
  model_options.data_name = options.data.name;
  model_options.checkpoint_activations = false;
  trained.model = make_model(options.model, model_options);
  load_weights(file, *trained.model, /*strict=*/true);
  const torch::Device device = choose_device(options.device, 0);
  const bool is_plain = device.is_cpu() || options.precision == "fp32";
  if (device.is_cuda()) allow_tf32(!is_plain);
  trained.model->to(device);
  trained.place = {device, !is_plain && trained.model->prefers_channels_last()};
  if (trained.place.channels_last) use_channels_last(*trained.model);
  trained.bf16 = device.is_cuda() && options.precision == "bf16";
  trained.model->eval();
  return trained;
}

}  // namespace tutti
