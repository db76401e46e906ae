#include "cli/report_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "record/record_file.h"
#include "report/compare.h"
#include "report/import.h"
#include "report/page.h"
#include "report/report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsOnTerminal = 60;
constexpr int kExitWorse = 1;
constexpr int kExitNotCompared = 3;  // nothing in common, or nothing to read

struct ReportArguments {
  std::vector<std::string> runs, imports, compared;
  std::string runs_folder = "runs";
  std::string html_file, folder;
  bool as_markdown = false, as_csv = false, as_json = false;
  double threshold_percent = 2;
};

/// What errors and names say need not be UTF-8; JSON must be.
std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

CellSet read_published(const fs::path& file) {
  CellSet set;
  set.title = file.filename().string();
  set.cells = import_published(file, set.notes);
  return set;
}

/// Texts, Markdown and comma-separated figures are published ones; the rest is Tutti's own.
CellSet read_any(const std::string& name, const std::string& runs_folder) {
  const fs::path extension = fs::path(name).extension();
  const bool is_published = extension == ".csv" || extension == ".md" || extension == ".txt";
  if (is_published && fs::is_regular_file(name)) return read_published(name);
  return read_cells(name, runs_folder);
}

/// A folder that is gone when its owner is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // A name that nobody can guess: another user could have put links there.
    std::string name = (fs::temp_directory_path() / "tutti-report-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("cannot make the folder {}: {}", name, std::strerror(errno));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { remove_tree(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool draw(const Report& report, const fs::path& folder) {
  if (report.figures.empty()) return false;
  make_folders(folder);
  if (draw_figures(report.figures, folder)) return true;
  fmt::print(stderr, "tutti: there is no gnuplot, so no figures (apt-get install gnuplot-nox)\n");
  return false;
}

void write_folder(const Report& report, const CellSet& set, const fs::path& folder) {
  make_folders(folder);
  const bool has_figures = draw(report, folder / "figures");
  const nlohmann::json document = page_document(report, has_figures ? folder / "figures" : fs::path());
  write_file_atomically(folder / "report.html", render_page(document));
  write_file_atomically(folder / "report.json", text_of(document) + "\n");
  write_file_atomically(folder / "report.md", markdown(report, has_figures ? "figures" : ""));
  for (const Table& table : report.tables) write_file_atomically(folder / (table.id + ".csv"), csv(table));
  // What was no record before; the others have files of their own.
  std::string records;
  for (const Cell& cell : set.cells)
    if (cell.source == Source::published) records += record_line(Cell::kKind, cell) + "\n";
  if (!records.empty()) write_file_atomically(folder / kCellsFile, records);
  fmt::print("{}/: report.html, report.md, report.json{}, {} table{} as CSV, {} figures as SVG and PNG\n",
             folder.string(), records.empty() ? "" : ", cells.jsonl", report.tables.size(),
             report.tables.size() == 1 ? "" : "s", has_figures ? report.figures.size() : 0);
}

/// One side of a comparison: "before", or repeats of it, "before-1,before-2,before-3".
CellSet read_side(const std::string& names, const std::string& runs_folder) {
  std::vector<CellSet> sets;
  const bool is_one = fs::exists(names);
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = is_one ? names.size() : std::min(names.find(',', begin), names.size());
    sets.push_back(read_any(names.substr(begin, end - begin), runs_folder));
    begin = end + 1;
  }
  return merge(std::move(sets));
}

int compare(const ReportArguments& arguments) {
  const CellSet a = read_side(arguments.compared[0], arguments.runs_folder);
  const CellSet b = read_side(arguments.compared[1], arguments.runs_folder);
  for (const CellSet* set : {&a, &b})
    if (set->cells.empty()) throw Error("{} has no cells to compare", set->title);
  const Comparison comparison = compare_cells(a.cells, b.cells, arguments.threshold_percent / 100);
  if (comparison.configs.empty() && comparison.failed_in_b.empty())
    throw Error("{} and {} have nothing in common that could be compared: A has {}, B has {}", arguments.compared[0],
                arguments.compared[1], describe(a.cells.front().config), describe(b.cells.front().config));
  const Table all_columns = comparison_table(comparison);
  const Table table = for_people(all_columns);
  if (arguments.as_json)
    fmt::print("{}\n", text_of(to_json(all_columns)));
  else if (arguments.as_csv)
    fmt::print("{}", csv(all_columns));
  else
    fmt::print("A: {}\nB: {}\n\n{}\n{}", arguments.compared[0], arguments.compared[1],
               arguments.as_markdown ? markdown(table) : aligned_text(table, table.rows.size(), terminal_width()),
               sum_up(comparison));
  return comparison.is_worse() ? kExitWorse : 0;
}

/// A script has to tell "slower" from "could not be compared", whatever the reason.
int run_compare(const ReportArguments& arguments) {
  try {
    return compare(arguments);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    fmt::print(stderr, "tutti: {}\n", printable(error.what()));
    return kExitNotCompared;
  }
}

int run_report(const ReportArguments& arguments) {
  std::vector<CellSet> sets;
  for (const std::string& run : arguments.runs) sets.push_back(read_any(run, arguments.runs_folder));
  for (const std::string& file : arguments.imports) sets.push_back(read_published(file));
  if (sets.empty()) throw UsageError("name a run, a sweep or a published text to report. See `tutti report --help`.");
  const CellSet set = merge(std::move(sets));
  const Report report = build_report(set);
  const bool prints = arguments.as_markdown || arguments.as_csv || arguments.as_json;
  if (arguments.as_markdown) fmt::print("{}", markdown(report, ""));
  if (arguments.as_csv) fmt::print("{}", csv(report));
  if (arguments.as_json) fmt::print("{}\n", text_of(page_document(report, "")));
  if (!arguments.html_file.empty()) {
    const TemporaryFolder figures;
    const bool has_figures = draw(report, figures.path());
    write_file_atomically(arguments.html_file,
                          render_page(page_document(report, has_figures ? figures.path() : fs::path())));
    if (!prints) fmt::print("{}\n", arguments.html_file);
  }
  if (!prints && arguments.html_file.empty())
    fmt::print("{}", terminal_text(report, kRowsOnTerminal, terminal_width()));
  if (!arguments.folder.empty()) write_folder(report, set, arguments.folder);
  return 0;
}

}  // namespace

std::function<int()> add_report_command(CLI::App& program) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command =
      program.add_subcommand("report", "tables, figures and a page of runs, sweeps and published results");
  command
      ->add_option("RUN", arguments->runs,
                   "sweeps or runs (name or folder), files of records, published texts or figures")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--import", arguments->imports, "published texts, whatever they are called")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--html", arguments->html_file, "write one page with tables, figures and timelines to this file");
  command->add_flag("--md", arguments->as_markdown, "print Markdown");
  command->add_flag("--csv", arguments->as_csv, "print comma-separated values, a table after the other");
  command->add_flag("--json", arguments->as_json, "print the report as JSON, in the form the page is made from");
  command->add_option("-o,--out", arguments->folder, "write page, Markdown, CSV, figures and records to this folder");
  command
      ->add_option("--compare", arguments->compared,
                   "A B: what got faster or slower from A to B; either may be several runs, A1,A2,A3")
      ->expected(2)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  command->add_option("--threshold", arguments->threshold_percent, "--compare: percent from which on a change counts")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs")->capture_default_str();
  command->footer(
      "Examples:\n  tutti report first second\n  tutti report published/unet_gpus_workers.csv first\n  tutti report "
      "runs/…-bench-strategies-networks -o report\n"
      "  tutti report --compare before after   # exit code 1: something got slower; 3: nothing to compare");
  return [arguments] {
    if (!arguments->compared.empty()) {
      if (!arguments->runs.empty()) throw UsageError("--compare takes two runs, and no others beside it.");
      return run_compare(*arguments);
    }
    return run_report(*arguments);
  };
}

}  // namespace tutti
