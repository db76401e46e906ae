#include "runs/run_list.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tutti {
namespace {

/// "120/500" of a run that is going on.
std::string steps_text(const RunFacts& run) {
  if (run.parts == 0) return "";
  return run.steps > run.step ? fmt::format("{}/{}", run.step, run.steps) : fmt::format("{}", run.step);
}

/// NaN is said: the run went wrong.
TableValue loss_value(const std::optional<double>& loss) {
  return loss && !std::isfinite(*loss) ? text_value("nan") : number_value(loss, 4);
}

}  // namespace

Table run_table(const std::vector<RunFacts>& runs) {
  Table table;
  table.id = "runs";
  table.title = "Runs";
  table.columns = {{"name", "run"},
                   {"state", "state"},
                   {"model", "model"},
                   {"data", "data"},
                   {"ranks", "ranks", "number"},
                   {"strategy", "strategy"},
                   {"step", "step", "number"},
                   {"loss", "loss", "number", 4},
                   {"test", "test", "number"},
                   {"samples_per_s", "samples/s", "number", 1},
                   {"began", "began"}};
  for (const RunFacts& run : runs) {
    const RunConfig& config = run.config();
    const bool has_rate = run.samples_per_s > 0;
    TableRow row;
    row.values = {text_value(run.name),
                  text_value(word(run.state)),
                  text_value(config.model),
                  text_value(config.data),
                  run.parts > 0 ? whole_value(config.ranks, 0) : TableValue{},
                  text_value(config.strategy),
                  text_value(steps_text(run)),
                  loss_value(run.loss()),
                  text_value(headline(run.test)),
                  number_value(has_rate ? std::optional<double>(run.samples_per_s) : std::nullopt, 1),
                  text_value(readable_date(run.began_s))};
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string run_list(const std::vector<RunFacts>& runs, std::size_t width) {
  return plain_text(run_table(runs), width, {"data", "strategy", "ranks", "model", "began", "samples_per_s", "test"});
}

nlohmann::json to_json(const std::vector<RunFacts>& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunFacts& run : runs) list.push_back(to_json(run));
  return list;
}

}  // namespace tutti
