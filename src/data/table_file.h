#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/table_columns.h"

namespace tutti {

/// A CSV file, or train.csv with val.csv (or test.csv) of a folder, column by column.
struct TableFile {
  /// Throws Error naming file and line. `held_out` is the share of rows that are the test, 0: a fifth; not for two
  /// files. Rows that say the same are on one side.
  TableFile(const std::filesystem::path& path, const std::string& label, double held_out);

  const std::string& name() const { return places.files[0]; }

  RowPlaces places;
  std::vector<CsvColumn> columns;
  size_t label_column = 0;
  std::vector<bool> is_test;  // of the rows
  std::vector<std::string> class_names;
  std::vector<int32_t> classes;  // of the rows
};

}  // namespace tutti
