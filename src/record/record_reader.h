#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <vector>

#include "record/cell.h"
#include "tutti/records.h"

namespace tutti {

/// A place between two lines of a file of records.
struct RecordPlace {
  std::streamoff bytes = 0;
  std::size_t lines = 0;
};

/// Reads a file of records line by line, so that no more than one is in memory: a sweep may have a hundred thousand.
///
///   for (RecordReader reader(file); reader.next();)
///     if (reader.is<EpochRecord>()) add(reader.as<EpochRecord>());
///
/// A last line that is cut off, as a full disk leaves it, is passed over. Throws Error naming file and line of anything
/// else that is no record, and of a record that does not have its kind's form; next() then goes on behind it.
class RecordReader {
 public:
  /// From the beginning, or from where another reader came to.
  explicit RecordReader(const std::filesystem::path& file, RecordPlace from = {});

  bool next();
  /// Of the current record.
  const std::string& kind() const { return kind_; }
  template <typename T>
  bool is() const {
    return kind_ == T::kKind;
  }
  /// When it was written, in seconds since 1970; 0 where that was not asked of it, as of a Cell.
  double time_s() const { return time_s_; }
  /// One of the structs of tutti/records.h, or a Cell.
  template <typename T>
  T as() const;
  /// The current line ends with a newline. Its writer has begun every line but the last whole.
  bool is_whole() const { return is_whole_; }
  /// After the last record: more was there, but not to its end.
  bool is_cut_off() const { return is_cut_off_; }
  /// Behind the last line that was whole: what a writer has begun after it may become a record.
  RecordPlace place() const { return place_; }

 private:
  [[noreturn]] void refuse(const std::string& problem) const;

  std::filesystem::path file_;
  std::vector<char> buffer_;
  std::ifstream stream_;
  std::string line_, kind_;
  double time_s_ = 0;
  std::size_t number_ = 0;
  RecordPlace place_;
  bool is_whole_ = true;
  bool is_cut_off_ = false;
};

}  // namespace tutti
