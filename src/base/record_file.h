#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

/// Appends measurements to a file, one line of JSON each, on the disk before add() returns to the caller's next step.
/// A line is there whole or not at all, also when the disk is full.
class RecordFile {
 public:
  RecordFile() = default;  // records nothing
  explicit RecordFile(const std::filesystem::path& path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&& other) noexcept;
  ~RecordFile();

  /// Adds "record": kind and the time to `record`.
  void add(const std::string& kind, nlohmann::json record);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace tutti
