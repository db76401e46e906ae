#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/files.h"
#include "base/json_files.h"
#include "base/utf8.h"
#include "report/page_assets.h"
#include "report/table_forms.h"
#include "report/timeline.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostTraces = 8;
constexpr std::size_t kMostTitles = 4;
constexpr std::size_t kMostRowsOfPage = 2000;  // of a table; a browser sorts them at once
constexpr double kBusy = 1.5;                  // load per core above which others were at work
constexpr std::size_t kMostNotes = 40;

/// Warns of cells that began while the machine had more to do than it has cores.
void note_load(const std::vector<Cell>& cells, std::vector<std::string>& notes) {
  std::size_t known = 0, busy = 0;
  double worst = 0;
  for (const Cell& cell : cells) {
    if (!cell.load) continue;
    ++known;
    const int cores = cell.environment ? cell.environment->cores : 0;
    if (cores <= 0 || *cell.load <= kBusy * cores) continue;
    ++busy;
    worst = std::max(worst, *cell.load / cores);
  }
  if (busy > 0)
    notes.push_back(fmt::format(
        "{} of {} cells began while the machine was busy: a load of up to {:.1f} per core. Their figures say "
        "less than their intervals promise",
        busy, known, worst));
}

std::vector<std::pair<fs::path, std::string>> traces_of(const std::vector<Group>& groups) {
  std::vector<std::pair<fs::path, std::string>> traces;
  for (const Group& group : groups) {
    if (traces.size() == kMostTraces) break;
    for (const Cell* cell : group.cells) {
      const fs::path file = fs::path(cell->folder) / "trace.json";
      if (cell->folder.empty() || !fs::is_regular_file(file)) continue;
      traces.emplace_back(file, describe(group.config));
      break;
    }
  }
  return traces;
}

json read_timeline(const fs::path& file, const std::string& title) {
  const json trace = read_json_file(file);
  try {
    json shown = timeline_from_trace(trace);
    shown["title"] = fmt::format("{}: {}", title, shown.value("title", ""));
    shown["source"] = "measured";
    return shown;
  } catch (const Error& problem) {
    throw Error("{}: {}", file.string(), problem.what());
  }
}

/// As page.h has it.
json chart_json(const LineChart& chart) {
  json lines = json::array();
  for (const ChartLine& line : chart.lines) {
    json points = json::array();
    for (const ChartPoint& point : line.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      points.push_back({point.x, point.y});
      if (point.half > 0) points.back().push_back(point.half);
    }
    lines.push_back({{"name", line.name}, {"is_dashed", line.is_dashed}, {"points", std::move(points)}});
  }
  return {{"lines", std::move(lines)},        {"x_label", chart.x_label},   {"y_label", chart.y_label},
          {"x_is_log", chart.x_is_log},       {"y_is_log", chart.y_is_log}, {"y_has_zero", chart.y_has_zero},
          {"x_marks", thinned(chart.x_marks)}};
}

std::string lines(const std::vector<std::string>& texts, const std::string& prefix, std::size_t width = 0) {
  std::string result;
  for (const std::string& text : texts) result += wrapped(prefix + text, width) + "\n";
  return result;
}

std::string headline_text(const Headline& headline) {
  return fmt::format("{}: {}{}", headline.label, headline.value,
                     headline.detail.empty() ? "" : fmt::format(" ({})", headline.detail));
}

}  // namespace

CellSet merge(std::vector<CellSet> sets) {
  CellSet all;
  std::set<std::string> titles, commands;
  for (CellSet& set : sets) {
    if (titles.insert(set.title).second && titles.size() <= kMostTitles)
      all.title += (all.title.empty() ? "" : ", ") + set.title;
    if (!set.command.empty() && commands.insert(set.command).second)
      all.command += (all.command.empty() ? "" : "\n") + set.command;
    if (!all.environment) all.environment = set.environment;
    all.notes.insert(all.notes.end(), set.notes.begin(), set.notes.end());
    if (all.cells.empty())
      all.cells = std::move(set.cells);
    else
      std::move(set.cells.begin(), set.cells.end(), std::back_inserter(all.cells));
  }
  if (titles.size() > kMostTitles) all.title += fmt::format(" and {} more", titles.size() - kMostTitles);
  // Runs that no sweep has numbered.
  std::unordered_map<std::string, int> repeats;
  for (Cell& cell : all.cells)
    if (cell.id.empty()) cell.repeat = ++repeats[key_of(cell.config)];
  return all;
}

Report build_report(const CellSet& set) {
  if (set.cells.empty())
    throw Error("{} has no cells to report{}", set.title.empty() ? "this" : set.title,
                set.notes.empty() ? "" : ": " + set.notes.front());
  Report report;
  report.title = set.title;
  report.command = set.command;
  report.environment = set.environment;
  for (const Cell& cell : set.cells)
    if (!report.environment) report.environment = cell.environment;
  report.notes = set.notes;
  note_load(set.cells, report.notes);
  const std::vector<Group> groups = group_cells(set.cells);
  report.headlines = headlines(groups);
  for (Table table :
       {strategies_table(groups), fastest_table(groups, report.notes), step_rates_table(groups, report.notes),
        epochs_table(set.cells), nodes_table(set.cells, report.notes), rank_times_table(set.cells),
        statistics_table(groups), failures_table(set.cells)}) {
    if (table.rows.empty()) continue;
    if (table.left_out > 0)
      table.caption += fmt::format("{}{} further rows are left out.", table.caption.empty() ? "" : " ", table.left_out);
    report.tables.push_back(std::move(table));
  }
  report.figures = make_figures(groups, report.notes);
  report.traces = traces_of(groups);
  const auto failed =
      std::count_if(set.cells.begin(), set.cells.end(), [](const Cell& cell) { return cell.is_failed; });
  if (failed > 0)
    report.notes.insert(report.notes.begin(),
                        fmt::format("{} of {} cells failed; the last table says why", failed, set.cells.size()));
  if (report.notes.size() > kMostNotes) {
    const std::size_t more = report.notes.size() - kMostNotes;
    report.notes.resize(kMostNotes);
    report.notes.push_back(fmt::format("… and {} more of such notes", more));
  }
  return report;
}

std::string terminal_text(const Report& report, std::size_t most_rows, std::size_t width) {
  std::string text = "# " + report.title + "\n\n";
  for (const Headline& headline : report.headlines) text += wrapped(printable(headline_text(headline)), width) + "\n";
  if (!report.headlines.empty()) text += "\n";
  text += lines(report.notes, "note: ", width);
  if (!report.notes.empty()) text += "\n";
  for (const Table& table : report.tables) text += aligned_text(for_people(table), most_rows, width) + "\n";
  return text;
}

std::string markdown(const Report& report, const std::string& figure_folder) {
  std::string text = "# " + report.title + "\n\n";
  for (const Headline& headline : report.headlines) text += "**" + headline_text(headline) + "**\n\n";
  text += lines(report.notes, "- note: ");
  if (!report.notes.empty()) text += "\n";
  for (const Table& table : report.tables) text += markdown(for_people(table)) + "\n";
  if (!figure_folder.empty())
    for (const Figure& figure : report.figures)
      text += fmt::format("## {0}\n\n![{0}]({1}/{2}.svg)\n\n{3}\n\n", figure.title, figure_folder, figure.id,
                          figure.caption);
  if (!report.command.empty()) text += "## To repeat it\n\n```\n" + report.command + "\n```\n\n";
  if (report.environment) text += "## Environment\n\n```\n" + json(*report.environment).dump(1) + "\n```\n";
  return text;
}

std::string csv(const Report& report) {
  std::string text;
  for (const Table& table : report.tables)
    text += fmt::format("{}# {}: {}\n", text.empty() ? "" : "\n", table.id, table.title) + csv(table);
  return text;
}

json page_document(const Report& report, const fs::path& figure_folder) {
  json document = {
      {"title", report.title},     {"subtitle", "measured, simulated and published figures, each labelled"},
      {"command", report.command}, {"environment", report.environment ? json(*report.environment) : json::object()},
      {"notes", report.notes},     {"tables", json::array()},
      {"figures", json::array()},  {"timelines", json::array()}};
  for (const Headline& headline : report.headlines)
    document["highlights"].push_back(
        {{"label", headline.label}, {"value", headline.value}, {"detail", headline.detail}});
  for (const Table& table : report.tables) {
    Table shown = for_people(table);
    if (shown.rows.size() > kMostRowsOfPage) {
      shown.caption +=
          fmt::format(" The first {} of {} rows; {}.csv has all.", kMostRowsOfPage, shown.rows.size(), table.id);
      shown.rows.resize(kMostRowsOfPage);
    }
    document["tables"].push_back(to_json(shown));
  }
  for (const Figure& figure : report.figures) {
    json shown = {{"id", figure.id}, {"title", figure.title}, {"caption", figure.caption}};
    const fs::path file = figure_folder / (figure.id + ".svg");
    if (!figure_folder.empty() && fs::is_regular_file(file)) {
      std::string svg = read_file(file);
      // A page has one declaration, its own.
      if (const std::size_t begin = svg.find("<svg"); begin != std::string::npos) svg.erase(0, begin);
      shown["svg"] = svg;
    }
    if (!figure.curves.lines.empty()) shown["chart"] = chart_json(figure.curves);
    if (shown.contains("svg") || (shown.contains("chart") && !kChartLibrary.empty()))
      document["figures"].push_back(std::move(shown));
  }
  for (const auto& [file, title] : report.traces) document["timelines"].push_back(read_timeline(file, title));
  return document;
}

}  // namespace tutti
