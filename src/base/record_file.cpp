#include "base/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "tutti/error.h"

namespace tutti {

RecordFile::RecordFile(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw Error("cannot open the record file {}: {}", path.string(), std::strerror(errno));
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

RecordFile::~RecordFile() {
  if (file_ >= 0) ::close(file_);
}

void RecordFile::add(const std::string& kind, nlohmann::json record) {
  if (file_ < 0) return;
  record["record"] = kind;
  record["time"] = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string line = record.dump() + "\n";
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const ssize_t put = ::write(file_, line.data(), line.size());
  if (put == static_cast<ssize_t>(line.size())) return;
  const std::string reason = put < 0 ? std::strerror(errno) : std::strerror(ENOSPC);
  if (::ftruncate(file_, before) != 0) {
    // The half line stays; readers skip a last line without an end.
  }
  throw Error("cannot write to the record file {}: {}", path_.string(), reason);
}

}  // namespace tutti
