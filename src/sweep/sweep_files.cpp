#include "sweep/sweep_files.h"

#include <filesystem>

#include "base/files.h"
#include "base/names.h"
#include "base/shipped_files.h"
#include "base/yaml_files.h"
#include "sweep/cells.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;

/// Sweeps by name; those in ./sweeps come before those that are shipped.
NamedFiles sweep_files() { return yaml_files({"sweeps", shipped_folder("sweeps", TUTTI_SWEEPS)}); }

Sweep read_sweep(const fs::path& path, bool quick, const std::vector<std::string>& train_options,
                 const ProblemOfOption& problem_of = {}) {
  Sweep sweep = parse_sweep(read_file(path), path.string(), quick, train_options, problem_of);
  sweep.name = path.stem().string();
  if (sweep.title.empty()) sweep.title = sweep.name;
  return sweep;
}

}  // namespace

Sweep find_sweep(const std::string& name, bool quick, const std::vector<std::string>& train_options,
                 const ProblemOfOption& problem_of) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return read_sweep(name, quick, train_options, problem_of);
  const NamedFiles files = sweep_files();
  if (const auto found = files.find(name); found != files.end())
    return read_sweep(found->second, quick, train_options, problem_of);
  throw UsageError("{} A file of your own works too.", unknown_name("sweep", name, sweep_names()));
}

std::vector<std::string> sweep_names() { return names_in(sweep_files()); }

std::vector<SweepSummary> list_sweeps(const std::vector<std::string>& train_options) {
  std::vector<SweepSummary> all;
  for (const auto& [name, path] : sweep_files()) {
    const Sweep sweep = read_sweep(path, false, train_options);
    all.push_back({name, sweep.title, expand(sweep).size(), {}});
    try {
      all.back().quick_cells = expand(read_sweep(path, true, train_options)).size();
    } catch (const UsageError&) {
      // It has none.
    }
  }
  return all;
}

std::string describe(const std::vector<SweepSummary>& sweeps) {
  std::string table = fmt::format("{:<22} {:>5} {:>7}  {}\n", "sweep", "cells", "--quick", "what it is");
  for (const SweepSummary& sweep : sweeps)
    table += fmt::format("{:<22} {:>5} {:>7}  {}\n", sweep.name, sweep.cells,
                         sweep.quick_cells ? std::to_string(*sweep.quick_cells) : "-", sweep.title);
  return table;
}

}  // namespace tutti::sweep
