#include "published/strategies_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <tuple>

#include "published/figures_file.h"

namespace tutti {
namespace {

constexpr std::size_t kSettings = 4;  // model, batch, network, strategy

bool is_header(const std::vector<std::string>& fields) {
  return fields.size() > kSettings && fields[0] == "DNN" && fields[1] == "BS" && fields[2] == "CONNECTION" &&
         fields[3] == "METHOD";
}

/// Number of ranks of each column of figures.
std::vector<int> rank_columns(const PublishedText& text, std::size_t line, const std::vector<std::string>& header) {
  static const std::regex count("(\\d+) GPUs?");
  std::vector<int> ranks;
  for (std::size_t i = kSettings; i < header.size(); ++i) {
    std::smatch match;
    if (header[i] == "Baseline")
      ranks.push_back(1);
    else if (std::regex_match(header[i], match, count))
      ranks.push_back(count_of(text, line, match[1], "number of GPUs"));
    else
      refuse_line(text, line, fmt::format("the column '{}' is neither Baseline nor '… GPUs'", header[i]));
  }
  return ranks;
}

/// "925.020 +- 4.42"
PublishedRate rate_in(const PublishedText& text, std::size_t line, const std::string& field, int ranks) {
  for (const std::string sign : {"+-", "±"})
    if (const std::size_t at = field.find(sign); at != std::string::npos)
      return {ranks, number_of(text, line, trimmed(field.substr(0, at)), "rate"),
              number_of(text, line, trimmed(field.substr(at + sign.size())), "deviation")};
  return {ranks, number_of(text, line, field, "rate"), std::nullopt};
}

/// A row for each strategy of a model on a network, with the baseline that all of them share.
std::vector<StrategiesRow> rows_of(const PublishedText& text, const FiguresTable& table) {
  using Case = std::tuple<std::string, int, std::string>;  // model, batch, network
  std::vector<StrategiesRow> rows;
  std::map<Case, PublishedRate> baselines;
  const auto case_of = [](const StrategiesRow& row) { return Case(row.model, row.batch, row.network); };
  for (const FiguresTable::Row& figure : table.rows) {
    const auto field = [&](const char* column) { return table.at(figure, column); };
    StrategiesRow row{figure.line,      field("model"),    count_of(text, figure.line, field("batch"), "batch size"),
                      field("network"), field("strategy"), {}};
    PublishedRate rate{count_of(text, figure.line, field("ranks"), "number of ranks"),
                       number_of(text, figure.line, field("samples_per_s"), "rate"), std::nullopt};
    if (const std::string deviation = field("deviation"); !deviation.empty())
      rate.deviation = number_of(text, figure.line, deviation, "deviation");
    if (row.method.empty()) {
      if (!rate.is_baseline()) refuse_line(text, figure.line, "several ranks need a strategy");
      baselines[case_of(row)] = rate;
      continue;
    }
    if (rows.empty() || case_of(rows.back()) != case_of(row) || rows.back().method != row.method) rows.push_back(row);
    rows.back().rates.push_back(rate);
  }
  for (StrategiesRow& row : rows)
    if (const auto found = baselines.find(case_of(row)); found != baselines.end())
      row.rates.insert(row.rates.begin(), found->second);
  return rows;
}

}  // namespace

bool has_strategies(const PublishedText& text) {
  if (has_figures(text)) return has_figures(text, {"ranks", "strategy", "samples_per_s"});
  return std::any_of(text.lines.begin(), text.lines.end(),
                     [](const std::string& line) { return is_header(row_fields(line)); });
}

std::vector<StrategiesRow> read_strategies(PublishedText& text) {
  if (has_figures(text)) return rows_of(text, read_figures(text));
  std::vector<StrategiesRow> rows;
  std::vector<int> columns;
  bool is_noted = false;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    if (line.empty() || line[0] == '#' || is_rule(line)) continue;
    const std::vector<std::string> fields = row_fields(line);
    if (fields.empty()) {
      check_is_prose(text, i);
      continue;
    }
    if (is_header(fields)) {
      columns = rank_columns(text, i, fields);
      continue;
    }
    if (columns.empty()) refuse_line(text, i, "a row without a header above it");
    std::vector<int> ranks = columns;
    if (fields.size() + 1 == kSettings + ranks.size() && ranks.size() > 1 && ranks[0] == 1 && ranks[1] == 1) {
      // "Baseline" and "1 GPU" are two names of one column.
      ranks.erase(ranks.begin());
      if (!is_noted)
        text.notes.push_back(
            fmt::format("{}: its header names Baseline and 1 GPU, its rows have one figure for both", text.name));
      is_noted = true;
    }
    if (fields.size() != kSettings + ranks.size())
      refuse_line(text, i, fmt::format("{} fields where the header has {}", fields.size(), kSettings + columns.size()));
    StrategiesRow row{i, fields[0], count_of(text, i, fields[1], "batch size"), fields[2], fields[3], {}};
    for (std::size_t column = 0; column < ranks.size(); ++column) {
      const std::string& field = fields[kSettings + column];
      if (!field.empty() && field != "-") row.rates.push_back(rate_in(text, i, field, ranks[column]));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tutti
