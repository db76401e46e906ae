#include "runs/run_details.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/utf8.h"
#include "options/option_table.h"
#include "record/record_file.h"
#include "report/table.h"
#include "status/rank_status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Where a checkpoint of the run lies now: the run may have been moved since.
fs::path place_of(const CheckpointRecord& saved, const RunFacts& run) {
  const fs::path then = saved.folder;
  return run.folder / then.parent_path().filename() / then.filename();
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::vector<CheckpointRecord> kept_checkpoints(const RunFacts& run) {
  std::vector<CheckpointRecord> kept;
  for (const CheckpointRecord& saved : run.checkpoints)
    if (is_there(place_of(saved, run))) kept.push_back(saved);
  return kept;
}

std::vector<OptionText> unusual_options(const RunFacts& run) {
  std::vector<OptionText> all = option_texts(run.run.config);
  all.erase(std::remove_if(all.begin(), all.end(), [](const OptionText& option) { return option.is_usual; }),
            all.end());
  return all;
}

std::string state_line(const RunFacts& run) {
  const std::string began = readable_date(run.began_s);
  std::string text = fmt::format("{}: {}", run.folder.string(), word(run.state));
  if (!run.holder.empty()) text += " by " + run.holder;
  if (run.parts > 1)
    text += fmt::format(", resumed {}", run.parts == 2 ? "once" : fmt::format("{} times", run.parts - 1));
  if (!began.empty())
    text += fmt::format("; began {}, its last record is {} old", began,
                        readable_time(std::max(0.0, wall_seconds() - run.last_s)));
  return text + "\n";
}

std::string result_lines(const RunFacts& run) {
  const RunConfig& config = run.config();
  if (run.parts == 0) return "";
  const auto& used = run.summary ? run.summary->strategy_used : config.strategy;
  std::string text = fmt::format(
      "  {}{} on {} rank{} × batch {}{}; {}{} over {}, {}, {}\n", config.model.empty() ? "training" : config.model,
      config.data.empty() ? "" : " with " + config.data, config.ranks, config.ranks == 1 ? "" : "s", config.batch,
      config.accumulate > 1 ? fmt::format(" × {}", config.accumulate) : "", config.strategy,
      used.empty() || used == config.strategy ? "" : " (" + used + ")",
      run.summary ? run.summary->transport : config.transport, config.device_used, config.precision);
  std::string result = fmt::format("  step {}", run.step);
  if (run.steps > run.step) result += fmt::format(" of {}", run.steps);
  if (const auto loss = run.loss()) result += fmt::format(", last loss {:.4f}", *loss);
  if (run.test) {
    for (const auto& [name, value] : run.test->metrics) result += fmt::format(", test {} {:.4f}", name, value);
    result += fmt::format(", test loss {:.4f}", run.test->loss);
  }
  if (run.samples_per_s > 0) result += fmt::format(", {:.1f} samples/s", run.samples_per_s);
  return text + result + "\n";
}

std::string epoch_lines(const RunFacts& run) {
  Table table;
  table.columns = {{"epoch", "epoch", "number"},         {"step", "step", "number"},
                   {"loss", "train loss", "number"},     {"test", "test", "number"},
                   {"test_loss", "test loss", "number"}, {"rate", "samples/s", "number"},
                   {"train", "trained", "duration"},     {"tested", "tested", "duration"}};
  for (const RunEpoch& epoch : run.epochs) {
    const EpochRecord& record = epoch.record;
    TableRow row;
    row.values = {whole_value(record.epoch, -1),
                  whole_value(record.step, -1),
                  number_value(record.train_loss, 4),
                  text_value(headline(record.test)),
                  number_value(record.test ? std::optional<double>(record.test->loss) : std::nullopt, 4),
                  number_value(record.data_per_s, 1),
                  duration_value(record.train_s),
                  duration_value(record.test_s.value_or(0))};
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? "" : "\nEpochs\n" + plain_text(table);
}

std::string option_lines(const RunFacts& run) {
  const std::vector<OptionText> options = unusual_options(run);
  if (options.empty()) return "";
  std::string text = "\nOptions that differ from the defaults\n";
  for (const OptionText& option : options) text += fmt::format("  {:<20} {}\n", option.name, option.text);
  return text;
}

std::string checkpoint_lines(const RunFacts& run) {
  if (run.checkpoints.empty()) return "";
  const std::vector<CheckpointRecord> kept = kept_checkpoints(run);
  std::string text = fmt::format("\nCheckpoints: {} saved, {} kept\n", run.checkpoints.size(), kept.size());
  for (const CheckpointRecord& saved : kept)
    text += fmt::format("  step {:<8} {}\n", saved.step, place_of(saved, run).string());
  if (!kept.empty() && run.state != RunState::running && run.state != RunState::finished)
    text += fmt::format("  to go on: tutti train --resume {}\n", run.folder.string());
  return text;
}

/// Files directly in the run's folder, by name.
std::vector<fs::path> files_of(const RunFacts& run) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run.folder, ignored))
    if (entry.path().filename() != "lock" && entry.is_regular_file(ignored)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

uint64_t size_of(const fs::path& file) {
  std::error_code problem;
  const auto size = fs::file_size(file, problem);
  return problem ? 0 : size;
}

std::string place_lines(const RunFacts& run) {
  std::string text = "\nFiles\n";
  for (const fs::path& file : files_of(run))
    text += fmt::format("  {}  ({})\n", file.string(), readable_bytes(size_of(file)));
  if (!run.run.nodes.empty()) {
    text += "\nNodes\n";
    for (const NodeRanks& node : run.run.nodes)
      text +=
          fmt::format("  {}: rank{} {}\n", node.host, node.ranks.size() == 1 ? "" : "s", fmt::join(node.ranks, ", "));
  }
  if (const auto& made = run.run.environment)
    text += fmt::format("\nProgram\n  tutti {}, commit {}, {}, {}{}; on {} ({}, {} cores)\n", made->tutti, made->commit,
                        made->build, made->compiler, made->libtorch.empty() ? "" : ", libtorch " + made->libtorch,
                        made->host, made->cpu, made->cores);
  if (run.summary && !run.summary->weights_sha256.empty())
    text += fmt::format("  weights {}\n", run.summary->weights_sha256);
  return text;
}

}  // namespace

std::string describe(const RunFacts& run) {
  std::string text = state_line(run);
  if (!run.problem.empty()) text += "  " + run.problem + "\n";
  text += result_lines(run) + option_lines(run) + epoch_lines(run) + checkpoint_lines(run) + place_lines(run);
  return printable(text);
}

json details_json(const RunFacts& run) {
  json all = to_json(run);
  json options = json::object(), epochs = json::array(), checkpoints = json::array(), files = json::array();
  for (const OptionText& option : unusual_options(run)) options[option.name] = option.text;
  for (const RunEpoch& epoch : run.epochs) {
    json one = epoch.record;
    for (const char* const key : {"ranks", "nodes", "step_s"}) one.erase(key);
    epochs.push_back(std::move(one));
  }
  for (const CheckpointRecord& saved : run.checkpoints) {
    const fs::path place = place_of(saved, run);
    checkpoints.push_back({{"step", saved.step}, {"folder", place.string()}, {"is_kept", is_there(place)}});
  }
  for (const fs::path& file : files_of(run)) files.push_back({{"file", file.string()}, {"bytes", size_of(file)}});
  all["options"] = options;
  all["epochs"] = epochs;
  all["checkpoints"] = checkpoints;
  all["files"] = files;
  all["nodes"] = json::array();
  for (const NodeRanks& node : run.run.nodes) all["nodes"].push_back({{"host", node.host}, {"ranks", node.ranks}});
  all["launcher"] = run.run.launcher;
  all["environment"] = run.run.environment ? json(*run.run.environment) : json();
  all["weights_sha256"] = run.summary ? json(run.summary->weights_sha256) : json();
  return all;
}

}  // namespace tutti
