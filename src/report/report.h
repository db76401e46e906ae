#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/cell_reader.h"
#include "report/contests.h"
#include "report/figures.h"
#include "report/table.h"

namespace tutti {

/// All that is shown of some runs, sweeps and published texts.
struct Report {
  std::string title;
  std::string command;  // to repeat it, one a line
  std::shared_ptr<const Environment> environment;
  std::vector<Headline> headlines;
  std::vector<std::string> notes;
  std::vector<Table> tables;  // those that fit, with all columns
  std::vector<Figure> figures;
  std::vector<std::pair<std::filesystem::path, std::string>> traces;  // with their titles
};

/// Throws Error where there is nothing to report.
Report build_report(const CellSet& set);

/// Sets put together, in order.
CellSet merge(std::vector<CellSet> sets);

/// For a terminal: `most_rows` of each table, in lines of at most `width` columns (0: of any length).
std::string terminal_text(const Report& report, std::size_t most_rows, std::size_t width = 0);
/// Figures are named as files in `figure_folder`; "": none were drawn.
std::string markdown(const Report& report, const std::string& figure_folder);
std::string csv(const Report& report);

/// What render_page() shows. Figures are read from `figure_folder`/ID.svg; those that are not there are left out.
nlohmann::json page_document(const Report& report, const std::filesystem::path& figure_folder);

}  // namespace tutti
