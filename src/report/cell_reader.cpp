#include "report/cell_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/files.h"
#include "base/names.h"
#include "report/fields.h"
#include "report/run_records.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kBufferBytes = 1 << 20;

std::string attempt_key(const Cell& cell) { return fmt::format("{}\x1f{}\x1f{}", cell.sweep, cell.id, cell.repeat); }

/// Without reading it. The quotes of a key would be escaped inside of a text.
bool is_cell(const std::string& line) {
  return line.find("\"record\":\"cell\"") != std::string::npos ||
         line.find("\"record\": \"cell\"") != std::string::npos;
}

/// Line by line, so that no more than one record is JSON at a time: a sweep may have a hundred thousand.
void read_lines(const fs::path& file, CellSet& set) {
  std::vector<char> buffer(kBufferBytes);
  std::ifstream stream;
  stream.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  stream.open(file);
  if (!stream) throw Error("cannot read {}: {}", file.string(), std::strerror(errno));
  RunRecords run;
  CellParser parser;
  std::unordered_map<std::string, std::size_t> places;  // of attempts, in set.cells
  const fs::path folder = file.parent_path() / "cells";
  const auto add = [&](Cell cell) {
    if (cell.id.empty()) {
      set.cells.push_back(std::move(cell));
      return;
    }
    cell.folder = (folder / cell.id).string();
    const auto [place, is_new] = places.emplace(attempt_key(cell), set.cells.size());
    if (is_new)
      set.cells.push_back(std::move(cell));
    else
      set.cells[place->second] = std::move(cell);
  };
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const bool is_whole = !stream.eof();  // a line that the end of the file ended has no newline
    try {
      if (is_cell(line)) {
        add(parser.parse(line));
        continue;
      }
      const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!record.is_object() || !record.contains("record"))
        throw Error("this is not a record; the file is damaged. Remove the line to read the rest");
      run.add(record);
    } catch (const std::exception& problem) {
      if (!is_whole) {
        set.notes.push_back(
            fmt::format("{}: the last line is cut off and was skipped; its cell has to run again", file.string()));
        break;
      }
      throw Error("{}, line {}: {}", file.string(), number, problem.what());
    }
  }
  if (stream.bad()) throw Error("cannot read {} beyond line {}: {}", file.string(), number, std::strerror(errno));
  if (std::optional<Cell> cell = run.cell()) {
    cell->folder = file.parent_path().string();
    if (!set.environment) set.environment = cell->environment;
    set.cells.push_back(std::move(*cell));
  }
}

void read_sweep_file(const fs::path& file, CellSet& set) {
  const json sweep = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!sweep.is_object()) throw Error("{} is not a sweep's description: it is no JSON object", file.string());
  try {
    set.title = text_in(sweep, "title");
    if (set.title.empty()) set.title = text_in(sweep, "name");
    set.command = text_in(sweep, "command");
    if (const json* const environment = object_in(sweep, "environment"))
      set.environment = std::make_shared<const json>(*environment);
    const json* const planned = array_in(sweep, "cells");
    if (planned == nullptr) return;
    std::unordered_set<std::string> ended;
    for (const Cell& cell : set.cells) ended.insert(cell.id);
    std::size_t pending = 0;
    for (const json& cell : *planned) pending += ended.count(text_in(cell, "id")) == 0 ? 1 : 0;
    if (pending > 0)
      set.notes.push_back(fmt::format("{} of {} cells of {} are pending; `tutti bench --resume` runs them", pending,
                                      planned->size(), set.title));
  } catch (const Error& problem) {
    throw Error("{}: {}", file.string(), problem.what());
  }
}

/// The file of records in a folder, or nothing.
fs::path records_in(const fs::path& folder) {
  for (const char* name : {"cells.jsonl", "records.jsonl"})
    if (fs::is_regular_file(folder / name)) return folder / name;
  // A sweep that was stopped before its first cell ended.
  return fs::is_regular_file(folder / "sweep.json") ? folder / "cells.jsonl" : fs::path();
}

fs::path find(const std::string& run, const fs::path& runs_folder) {
  for (const fs::path& place : {fs::path(run), runs_folder / run}) {
    if (fs::is_regular_file(place)) return place;
    if (fs::path file = records_in(place); !file.empty()) return file;
  }
  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_folder, ignored))
    if (!records_in(entry.path()).empty()) known.push_back(entry.path().filename().string());
  const std::string nearest = nearest_name(run, known);
  throw Error(
      "no run or sweep '{}': neither a file, nor a folder with cells.jsonl or records.jsonl, nor a name in {}{}", run,
      runs_folder.string(), nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

}  // namespace

CellSet read_cells(const std::string& run, const fs::path& runs_folder) {
  const fs::path file = find(run, runs_folder);
  CellSet set;
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  const bool is_named_by_folder = file.filename() == "records.jsonl" || file.filename() == "cells.jsonl";
  set.title = (is_named_by_folder ? folder.filename() : file.stem()).string();
  const fs::path sweep = file.parent_path() / "sweep.json";
  if (fs::exists(file) || !fs::exists(sweep)) read_lines(file, set);
  if (file.filename() == "cells.jsonl" && fs::exists(sweep)) read_sweep_file(sweep, set);
  return set;
}

}  // namespace tutti
