#include "sweep/sweep_files.h"

#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/names.h"
#include "sweep/cells.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;

/// Sweeps by name; those in ./sweeps come before those of the source.
std::map<std::string, fs::path> sweep_files() {
  std::map<std::string, fs::path> files;
  for (const char* folder : {"sweeps", TUTTI_SWEEPS}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".yaml") files.emplace(entry->path().stem().string(), entry->path());
    }
  }
  return files;
}

Sweep read_sweep(const fs::path& path, bool quick, const std::vector<std::string>& train_options) {
  Sweep sweep = parse_sweep(read_file(path), path.string(), quick, train_options);
  sweep.name = path.stem().string();
  if (sweep.title.empty()) sweep.title = sweep.name;
  return sweep;
}

}  // namespace

Sweep find_sweep(const std::string& name, bool quick, const std::vector<std::string>& train_options) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return read_sweep(name, quick, train_options);
  const std::map<std::string, fs::path> files = sweep_files();
  if (const auto found = files.find(name); found != files.end()) return read_sweep(found->second, quick, train_options);
  throw UsageError("{} A file of your own works too.", unknown_name("sweep", name, sweep_names()));
}

std::vector<std::string> sweep_names() {
  const std::map<std::string, fs::path> files = sweep_files();
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const auto& [name, path] : files) names.push_back(name);
  return names;
}

std::string list_sweeps(const std::vector<std::string>& train_options) {
  std::string table = fmt::format("{:<22} {:>5} {:>7}  {}\n", "sweep", "cells", "--quick", "what it is");
  for (const auto& [name, path] : sweep_files()) {
    const Sweep sweep = read_sweep(path, false, train_options);
    std::string quick = "-";
    try {
      quick = std::to_string(expand(read_sweep(path, true, train_options)).size());
    } catch (const UsageError&) {
      // It has none.
    }
    table += fmt::format("{:<22} {:>5} {:>7}  {}\n", name, expand(sweep).size(), quick, sweep.title);
  }
  return table;
}

}  // namespace tutti::sweep
