#include "cli/calibrate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "cli/calibrate_runs.h"
#include "cli/hold_out.h"
#include "cli/json_output.h"
#include "published/published_files.h"
#include "sim/calibration.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

struct CalibrateArguments {
  std::vector<std::string> files;
  Names held_out;
  bool rows = false;
  bool keeps_mislabelled = false;
  bool as_json = false;
};

/// "32" (ranks), "bert-base" (a model), "10gbe" (a network), or "bert-base/10gbe".
Names names_of(const PublishedRow& row) {
  return {std::to_string(row.ranks), row.model, row.network, row.model + "/" + row.network};
}

std::string describe(const Score& score) {
  return fmt::format("{} rows: mean error {:.2f} %, 90th percentile {:.2f} %, worst {:.1f} %", score.rows,
                     score.mean * 100, score.worst_tenth * 100, score.worst * 100);
}

void print_parameters(const Calibration& found, std::size_t rows) {
  std::size_t shared = 0;
  for (const Knob& knob : found.knobs) shared += knob.network.empty() ? 1 : 0;
  fmt::print("{} parameters ({} shared by all networks, {} of one network) from {} rows; {} evaluations\n\n",
             found.knobs.size(), shared, found.knobs.size() - shared, rows, found.fit.evaluations);
  fmt::print("  {:<34} {:<8} {:>10} {:<5} {:>12}\n", "parameter", "of", "value", "", "uncertainty");
  for (std::size_t i = 0; i < found.knobs.size(); ++i) {
    const Knob& knob = found.knobs[i];
    const FittedParameter& parameter = found.fit.parameters[i];
    const std::string how_sure = parameter.at_bound            ? "at its bound"
                                 : parameter.is_identifiable() ? fmt::format("± {:.0f} %", parameter.uncertainty * 100)
                                                               : "not identifiable";
    fmt::print("  {:<34} {:<8} {:>10.4g} {:<5} {:>12}\n", knob.name, knob.network.empty() ? "all" : knob.network,
               parameter.value * knob.scale, knob.unit, how_sure);
  }
}

json to_json(const Score& score) {
  return {{"rows", score.rows},
          {"mean_error", score.mean},
          {"percentile_90_error", score.worst_tenth},
          {"worst_error", score.worst}};
}

json parameters_of(const Calibration& found) {
  json parameters = json::array();
  for (std::size_t i = 0; i < found.knobs.size(); ++i) {
    const Knob& knob = found.knobs[i];
    parameters.push_back(fitted_parameter(knob.name, found.fit.parameters[i], knob.scale, knob.unit));
    parameters.back()["network"] = knob.network.empty() ? json() : json(knob.network);
  }
  return parameters;
}

json rows_of(const std::vector<Prediction>& predictions, bool are_held_out) {
  json rows = json::array();
  for (const Prediction& prediction : predictions) {
    const PublishedRow& row = prediction.row;
    rows.push_back({{"model", row.model},
                    {"network", row.network},
                    {"method", row.method},
                    {"ranks", row.ranks},
                    {"measured_s", row.step_s()},
                    {"simulated_s", prediction.step_s},
                    {"error", prediction.error()},
                    {"deviation", row.deviation / row.throughput},
                    {"held_out", are_held_out}});
  }
  return rows;
}

json choices_as_json(const std::vector<Prediction>& predictions) {
  json choices = json::array();
  for (const Choice& choice : choices_of(predictions))
    choices.push_back({{"model", choice.model},
                       {"network", choice.network},
                       {"ranks", choice.ranks},
                       {"chosen", choice.chosen},
                       {"best", choice.best},
                       {"loss", choice.loss}});
  return choices;
}

void print_rows(const std::vector<Prediction>& predictions) {
  fmt::print("\n  {:<10} {:<8} {:<18} {:>6} {:>12} {:>12} {:>8} {:>10}\n", "model", "network", "method", "ranks",
             "measured", "simulated", "error", "deviation");
  for (const Prediction& prediction : predictions) {
    const PublishedRow& row = prediction.row;
    fmt::print("  {:<10} {:<8} {:<18} {:>6} {:>9.1f} ms {:>9.1f} ms {:>+6.1f} % {:>8.1f} %\n", row.model, row.network,
               row.method, row.ranks, row.step_s() * 1e3, prediction.step_s * 1e3, prediction.error() * 100,
               row.deviation / row.throughput * 100);
  }
}

void print_choices(const std::vector<Prediction>& predictions) {
  const std::vector<Choice> choices = choices_of(predictions);
  std::size_t good = 0;
  for (const Choice& choice : choices) good += choice.loss <= kTellsApart ? 1 : 0;
  fmt::print("\nThe strategy that the simulation prefers is within 2 % of the best measured in {} of {} cases.\n", good,
             choices.size());
  for (const Choice& choice : choices)
    if (choice.loss > kTellsApart)
      fmt::print("  not for {} on {} with {} ranks: {}, which is {:.1f} % slower than {}\n", choice.model,
                 choice.network, choice.ranks, choice.chosen, choice.loss * 100, choice.best);
}

int run(const CalibrateArguments& arguments) {
  const auto is_folder = [](const std::string& path) { return std::filesystem::is_directory(path); };
  if (std::all_of(arguments.files.begin(), arguments.files.end(), is_folder))
    return calibrate_runs(arguments.files, arguments.held_out, arguments.rows, arguments.as_json);
  std::vector<PublishedRow> rows;
  std::size_t left_out = 0;
  for (const std::string& given : arguments.files) {
    const std::string file = published_file(given);
    for (const PublishedRow& row : parse_published(read_file(file), file)) {
      if (row.is_mislabelled && !arguments.keeps_mislabelled)
        ++left_out;
      else
        rows.push_back(row);
    }
  }
  if (left_out > 0 && !arguments.as_json)
    fmt::print("{} rows are left out: they repeat another network's (--keep-mislabelled takes them).\n", left_out);
  std::vector<PublishedRow> fitted, held_out;
  std::set<std::string> known;
  for (const PublishedRow& row : rows) {
    const Names names = names_of(row);
    known.insert(names.begin(), names.end());
    (is_held_out(names, arguments.held_out) ? held_out : fitted).push_back(row);
  }
  check_held_out(arguments.held_out, known);
  if (fitted.empty()) throw UsageError("--hold-out leaves no row to fit");
  const Calibration found = calibrate(fitted, unfitted_clusters(), published_knobs());
  const std::vector<Prediction> predictions = PublishedRuns(fitted).predict(found.clusters);
  if (arguments.as_json) {
    std::vector<Prediction> predicted;
    if (!held_out.empty()) predicted = PublishedRuns(held_out).predict(found.clusters);
    json rows_found = rows_of(predictions, /*are_held_out=*/false);
    for (const json& row : rows_of(predicted, /*are_held_out=*/true)) rows_found.push_back(row);
    print_json({{"parameters", parameters_of(found)},
                {"rows_left_out", left_out},
                {"fitted", to_json(score_of(predictions))},
                {"held_out", held_out.empty() ? json() : to_json(score_of(predicted))},
                {"choices", choices_as_json(held_out.empty() ? predictions : predicted)},
                {"rows", rows_found}});
    return 0;
  }
  print_parameters(found, fitted.size());
  if (arguments.rows) print_rows(predictions);
  fmt::print("\nfitted, {}\n", describe(score_of(predictions)));
  if (!held_out.empty()) {
    const std::vector<Prediction> predicted = PublishedRuns(held_out).predict(found.clusters);
    if (arguments.rows) print_rows(predicted);
    fmt::print("held out, {}\n", describe(score_of(predicted)));
    print_choices(predicted);
  } else {
    print_choices(predictions);
  }
  return 0;
}

}  // namespace

std::function<int()> add_calibrate_command(CLI::App& program) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command =
      program.add_subcommand("calibrate", "fit the simulator to measured results, and score it on held-out ones");
  command
      ->add_option("tables", arguments->files,
                   "folders of runs or sweeps of ours; or tables of strategies on networks, as those of published/")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--hold-out", arguments->held_out,
                   "rows to predict instead of fitting: a size (32), model, network or model/network")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--rows", arguments->rows, "show every row");
  add_json_flag(*command, arguments->as_json);
  command->add_flag("--keep-mislabelled", arguments->keeps_mislabelled, "also take rows that repeat another network's");
  return [arguments] { return run(*arguments); };
}

}  // namespace tutti
