#include "runs/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "options/option_table.h"
#include "report/table.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kPointsShown = 8;

/// The points of a loss curve that are numbers, by samples.
using Curve = std::vector<LossPoint>;

Curve progress_curve(const RunFacts& run) {
  Curve curve;
  for (const LossPoint& point : run.progress)
    if (std::isfinite(point.loss)) curve.push_back(point);
  return curve;
}

Curve epoch_curve(const RunFacts& run) {
  Curve curve;
  for (const RunEpoch& epoch : run.epochs)
    if (epoch.record.train_loss && std::isfinite(*epoch.record.train_loss))
      curve.push_back({epoch.samples, epoch.seconds, *epoch.record.train_loss});
  return curve;
}

struct CurveKind {
  const char* name;
  Curve (*of)(const RunFacts& run);
};
constexpr CurveKind kCurves[] = {{"progress", progress_curve}, {"epoch", epoch_curve}};  // the best first

double between(double x, double x0, double x1, double y0, double y1) {
  return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
}

/// `samples` is within the curve.
double loss_at(const Curve& curve, double samples) {
  const auto next = std::lower_bound(curve.begin(), curve.end(), samples,
                                     [](const LossPoint& point, double x) { return point.samples < x; });
  if (next == curve.end()) return curve.back().loss;
  if (next == curve.begin()) return next->loss;
  const LossPoint& last = *(next - 1);
  return between(samples, last.samples, next->samples, last.loss, next->loss);
}

double lowest_loss(const Curve& curve) {
  return std::min_element(curve.begin(), curve.end(),
                          [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; })
      ->loss;
}

/// When the curve is first at `loss` or below, which it is somewhere.
double seconds_to(const Curve& curve, double loss) {
  const auto first =
      std::find_if(curve.begin(), curve.end(), [&](const LossPoint& point) { return point.loss <= loss; });
  if (first == curve.begin()) return first->seconds;
  const LossPoint& before = *(first - 1);
  return between(-loss, -before.loss, -first->loss, before.seconds, first->seconds);
}

void compare_options(RunComparison& comparison) {
  std::vector<std::vector<OptionText>> all;
  std::vector<std::string> names;
  for (const RunFacts& run : comparison.runs) {
    all.push_back(option_texts(run.run.config));
    for (const OptionText& option : all.back())
      if (std::find(names.begin(), names.end(), option.name) == names.end()) names.push_back(option.name);
  }
  for (const std::string& name : names) {
    DifferentOption option{name, {}};
    for (const auto& options : all) {
      const auto found =
          std::find_if(options.begin(), options.end(), [&](const OptionText& o) { return o.name == name; });
      option.texts.push_back(found == options.end() ? "" : found->text);
    }
    const auto is_other = [&](const std::string& text) { return text != option.texts.front(); };
    if (std::any_of(option.texts.begin(), option.texts.end(), is_other))
      comparison.options.push_back(std::move(option));
  }
}

void compare_losses(RunComparison& comparison) {
  for (const CurveKind& kind : kCurves) {
    std::vector<Curve> curves;
    double first = 0, last = std::numeric_limits<double>::infinity(), common = -last;
    for (const RunFacts& run : comparison.runs) {
      curves.push_back(kind.of(run));
      if (curves.back().empty()) break;
      first = std::max(first, curves.back().front().samples);
      last = std::min(last, curves.back().back().samples);
      common = std::max(common, lowest_loss(curves.back()));
    }
    if (curves.back().empty() || first > last) continue;
    comparison.losses_from = kind.name;
    comparison.common_loss = common;
    for (const Curve& curve : curves) comparison.common_loss_s.push_back(seconds_to(curve, common));
    const int points = last > first ? kPointsShown : 1;
    for (int i = 0; i < points; ++i) {
      LossesAt at{i + 1 == points ? last : first + (last - first) * i / (points - 1), {}};
      for (const Curve& curve : curves) at.losses.push_back(loss_at(curve, at.samples));
      comparison.losses.push_back(std::move(at));
    }
    return;
  }
}

void compare_rates(RunComparison& comparison) {
  const auto& runs = comparison.runs;
  comparison.is_rate_steady = std::all_of(runs.begin(), runs.end(), [](const RunFacts& run) {
    return run.summary && run.summary->samples_per_s_steady > 0;
  });
  for (const RunFacts& run : runs) {
    const double rate = comparison.is_rate_steady ? run.summary->samples_per_s_steady : run.samples_per_s;
    comparison.rates.push_back(rate > 0 ? std::optional<double>(rate) : std::nullopt);
  }
}

/// "A", …, "Z", "27"
std::string letter(std::size_t run) {
  return run < 26 ? std::string(1, static_cast<char>('A' + run)) : std::to_string(run + 1);
}

/// A table with a first column for what a row is, and one for each run.
Table table_of_runs(const RunComparison& comparison, const std::string& what, const std::string& kind) {
  Table table;
  table.columns.push_back({"what", what, kind});
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) table.columns.push_back({letter(i), letter(i), "number"});
  return table;
}

template <typename Text>
void add_row(Table& table, const std::string& what, const RunComparison& comparison, Text text_of_run) {
  TableRow row;
  row.values.push_back(text_value(what));
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) row.values.push_back(text_value(text_of_run(i)));
  table.rows.push_back(std::move(row));
}

/// "5432.1 (1.13 ×)": how many times the first run's it is.
std::string with_ratio(const std::string& text, std::optional<double> ratio, std::size_t run) {
  return run > 0 && ratio && std::isfinite(*ratio) ? fmt::format("{} ({:.2f} ×)", text, *ratio) : text;
}

std::string results_text(const RunComparison& comparison) {
  Table table = table_of_runs(comparison, "", "text");
  const auto& runs = comparison.runs;
  add_row(table, "state", comparison, [&](std::size_t i) { return std::string(word(runs[i].state)); });
  add_row(table, "steps", comparison, [&](std::size_t i) { return fmt::format("{}", runs[i].step); });
  add_row(table, "last loss", comparison, [&](std::size_t i) {
    const auto loss = runs[i].loss();
    return loss ? fmt::format("{:.4f}", *loss) : "";
  });
  add_row(table, "test", comparison, [&](std::size_t i) { return headline(runs[i].test); });
  add_row(table, "test loss", comparison,
          [&](std::size_t i) { return runs[i].test ? fmt::format("{:.4f}", runs[i].test->loss) : ""; });
  add_row(table, comparison.is_rate_steady ? "samples/s after warm-up" : "samples/s", comparison, [&](std::size_t i) {
    const auto &rate = comparison.rates[i], &first = comparison.rates[0];
    if (!rate) return std::string();
    return with_ratio(fmt::format("{:.1f}", *rate), first ? std::optional<double>(*rate / *first) : std::nullopt, i);
  });
  if (comparison.common_loss)
    add_row(table, fmt::format("time to loss {:.4f}", *comparison.common_loss), comparison, [&](std::size_t i) {
      const double time = comparison.common_loss_s[i];
      return with_ratio(fmt::format("{:.2f} s", time), time / comparison.common_loss_s[0], i);
    });
  std::string text = plain_text(table);
  if (comparison.has_same_weights)
    text += *comparison.has_same_weights ? "All ended with the same weights, bit by bit.\n"
                                         : "They ended with different weights.\n";
  return text;
}

}  // namespace

RunComparison compare_runs(std::vector<RunFacts> runs) {
  RunComparison comparison;
  comparison.runs = std::move(runs);
  compare_options(comparison);
  compare_losses(comparison);
  compare_rates(comparison);
  const auto hash = [](const RunFacts& run) { return run.summary ? run.summary->weights_sha256 : ""; };
  const auto is_known = [&](const RunFacts& run) { return !hash(run).empty(); };
  const auto& all = comparison.runs;
  if (std::all_of(all.begin(), all.end(), is_known))
    comparison.has_same_weights =
        std::all_of(all.begin(), all.end(), [&](const RunFacts& run) { return hash(run) == hash(all[0]); });
  return comparison;
}

std::string describe(const RunComparison& comparison) {
  std::string text;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const RunFacts& run = comparison.runs[i];
    text += fmt::format("{}: {}{}\n", letter(i), run.folder.string(),
                        run.began_s > 0 ? ", began " + readable_date(run.began_s) : "");
  }
  text += "\nOptions that differ\n";
  Table options = table_of_runs(comparison, "option", "text");
  for (const DifferentOption& option : comparison.options)
    add_row(options, option.name, comparison, [&](std::size_t i) { return option.texts[i]; });
  text += options.rows.empty() ? "none\n" : plain_text(options);
  if (!comparison.losses.empty()) {
    text += fmt::format("\nTraining loss at equal samples (from {} records)\n", comparison.losses_from);
    Table losses = table_of_runs(comparison, "samples", "number");
    for (const LossesAt& at : comparison.losses)
      add_row(losses, fmt::format("{:.0f}", at.samples), comparison,
              [&](std::size_t i) { return fmt::format("{:.4f}", at.losses[i]); });
    text += plain_text(losses);
  }
  return printable(text + "\nResults\n" + results_text(comparison));
}

json to_json(const RunComparison& comparison) {
  json runs = json::array(), options = json::array(), losses = json::array(), rates = json::array();
  for (const RunFacts& run : comparison.runs) runs.push_back(to_json(run));
  for (const DifferentOption& option : comparison.options)
    options.push_back({{"name", option.name}, {"values", option.texts}});
  for (const LossesAt& at : comparison.losses) losses.push_back({{"samples", at.samples}, {"losses", at.losses}});
  for (const auto& rate : comparison.rates) rates.push_back(rate ? json(*rate) : json());
  return {{"runs", runs},
          {"options", options},
          {"losses_from", comparison.losses_from},
          {"losses", losses},
          {"common_loss", comparison.common_loss ? json(*comparison.common_loss) : json()},
          {"common_loss_s", comparison.common_loss_s},
          {"samples_per_s", rates},
          {"is_rate_steady", comparison.is_rate_steady},
          {"has_same_weights", comparison.has_same_weights ? json(*comparison.has_same_weights) : json()}};
}

}  // namespace tutti
