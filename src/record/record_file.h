#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tutti/records.h"

namespace tutti {

// In every record:
constexpr const char* kKindKey = "record";
constexpr const char* kTimeKey = "time";  // seconds since 1970

constexpr const char* kRecordsFile = "records.jsonl";  // of a run, in its folder
constexpr const char* kCellsFile = "cells.jsonl";      // of a sweep
constexpr const char* kSweepFile = "sweep.json";       // beside it: what was to be measured

/// Appends records to a file, one line of JSON each. A line is there whole or not at all, also when the disk is full.
/// When add() returns, the operating system has the line: it survives the end of this process, but not that of the
/// machine, for which callers flush_to_disk(). Half a line that a killed process has left is removed when the file is
/// opened.
class RecordFile : public RecordSink {
 public:
  explicit RecordFile(const std::filesystem::path& path);
  RecordFile(RecordFile&& other) noexcept;
  ~RecordFile() override;

  void add(const Record& record, double time_s) override;
  /// A record of any kind, with the time of now.
  void add(const std::string& kind, nlohmann::json record);
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(const std::string& kind, double time_s, nlohmann::json record);

  std::filesystem::path path_;
  int file_ = -1;
};

/// A record as a line of text, without its end.
std::string record_line(const std::string& kind, nlohmann::json record);

}  // namespace tutti
