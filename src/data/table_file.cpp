#include "data/table_file.h"

#include <algorithm>

#include "base/files.h"
#include "data/csv.h"
#include "data/split.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Appends a file's rows; returns the hash of each.
std::vector<uint64_t> add_rows(CsvReader& reader, TableFile& to) {
  to.places.files.push_back(reader.name());
  to.places.first_rows.push_back(to.places.lines.size());
  std::vector<uint64_t> hashes;
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    std::string row;
    for (size_t i = 0; i < fields.size(); ++i) {
      row += fields[i] + '\0';
      to.columns[i].fields.push_back(std::move(fields[i]));
    }
    to.places.lines.push_back(reader.line());
    hashes.push_back(hash_name(row));
  }
  return hashes;
}

}  // namespace

TableFile::TableFile(const fs::path& path, const std::string& label, double held_out) {
  std::error_code ignored;
  fs::path train = path, test;
  if (fs::is_directory(path, ignored)) {
    train = path / "train.csv";
    test = path / "val.csv";
    if (!fs::exists(test, ignored)) test = path / "test.csv";
    if (!fs::exists(train, ignored) || !fs::exists(test, ignored))
      throw Error("{}: a folder of tables has train.csv, and val.csv or test.csv; or name one file with --data-path",
                  path.string());
    if (held_out > 0)
      throw UsageError("--val-fraction {}: {} is the test already; leave the option out", held_out, test.string());
  }
  CsvReader reader(read_file(train), train.string());
  for (const std::string& column : reader.columns()) columns.push_back({column, {}});
  label_column = label.empty() ? columns.size() - 1 : reader.column("--label", label);
  const std::vector<uint64_t> hashes = add_rows(reader, *this);
  const size_t train_rows = places.lines.size();
  if (!test.empty()) {
    CsvReader test_reader(read_file(test), test.string());
    if (test_reader.columns() != reader.columns())
      throw Error("{}: its columns are not those of {}", test.string(), name());
    add_rows(test_reader, *this);
  }
  const Labels labels(columns[label_column], places);
  class_names = labels.names;
  classes = labels.of_rows;
  if (test.empty()) {
    is_test = hold_out(classes, hashes, held_out > 0 ? held_out : kUsualHeldOut);
  } else {
    is_test.assign(places.lines.size(), true);
    std::fill_n(is_test.begin(), train_rows, false);
  }
  const auto tests = std::count(is_test.begin(), is_test.end(), true);
  if (tests == 0 || static_cast<size_t>(tests) == places.lines.size())
    throw Error("{}: {} rows to train on and {} to test; one of each is the least", name(),
                places.lines.size() - static_cast<size_t>(tests), tests);
}

}  // namespace tutti
