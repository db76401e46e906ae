#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti {

/// Where the rows of a table come from: one file, or two, of which the second is the test.
struct RowPlaces {
  std::vector<std::string> files;
  std::vector<size_t> first_rows;  // of each file
  std::vector<int64_t> lines;      // of each row, in its file

  /// "train.csv:7".
  std::string of(size_t row) const;
};

/// A column of a table, as it was read.
struct CsvColumn {
  std::string name;
  std::vector<std::string> fields;
};

/// What a network sees of a column: a number with mean 0 and deviation 1 over the training part, or a 1 in the place
/// of its text among those of the training part (all 0 where it has none).
class FeatureColumn {
 public:
  /// Throws Error naming file and line for a field without a value, and for a column with more than kMostCategories
  /// different texts.
  FeatureColumn(const CsvColumn& column, const std::vector<bool>& is_test, const RowPlaces& places);

  int64_t width() const { return is_number_ ? 1 : static_cast<int64_t>(categories_.size()); }
  /// What is wrong with a field that is not of the table: "has no value"; "" where nothing is.
  std::string problem_of(const std::string& field) const;
  /// Writes width() floats.
  void write(const std::string& field, float* to) const;

  static constexpr size_t kMostCategories = 100;

 private:
  bool is_number_ = true;
  double mean_ = 0;
  double deviation_ = 1;
  std::map<std::string, int64_t> categories_;  // and their places
};

/// The classes of a label column: different fields, sorted (as numbers if all are), and each row's class. Throws Error
/// naming file and line for a label that is missing or not UTF-8, and where there are fewer than two, or so many that
/// they can be no classes.
struct Labels {
  Labels(const CsvColumn& column, const RowPlaces& places);
  std::vector<std::string> names;
  std::vector<int32_t> of_rows;

  static constexpr size_t kMostClasses = 1000;
};

/// Whether a field says that there is nothing: "", NA, N/A, nan, null, ?.
bool is_missing(const std::string& field);

}  // namespace tutti
