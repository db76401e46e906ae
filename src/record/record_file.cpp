#include "record/record_file.h"

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
    : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw Error("cannot open the record file {}: {}", path.string(), std::strerror(errno));
  off_t end = ::lseek(file_, 0, SEEK_END);
  for (char last = 0; end > 0 && ::pread(file_, &last, 1, end - 1) == 1 && last != '\n';) --end;
  if (::ftruncate(file_, end) != 0) throw Error("cannot write to {}: {}", path.string(), std::strerror(errno));
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

RecordFile::~RecordFile() {
  if (file_ >= 0) ::close(file_);
}

void RecordFile::add(const Record& record, double time_s) {
  std::visit([&](const auto& one) { append(one.kKind, time_s, one); }, record);
}

void RecordFile::add(const std::string& kind, nlohmann::json record) {
  append(kind, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(),
         std::move(record));
}

void RecordFile::append(const std::string& kind, double time_s, nlohmann::json record) {
  record[kTimeKey] = time_s;
  const std::string line = record_line(kind, std::move(record)) + "\n";
  const off_t before = ::lseek(file_, 0, SEEK_END);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t put = ::write(file_, line.data() + done, line.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;
    done += static_cast<std::size_t>(put);  // fewer than asked for is allowed, and no error
  }
  if (done == line.size()) return;
  const std::string reason = std::strerror(errno);
  if (::ftruncate(file_, before) != 0) {
    // The half line stays; readers skip a last line without an end.
  }
  throw Error("cannot write to the record file {}: {}", path_.string(), reason);
}

std::string record_line(const std::string& kind, nlohmann::json record) {
  record[kKindKey] = kind;
  // A file's name may be no text at all: better a question mark than no record.
  return record.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::unique_ptr<RecordSink> json_lines(const std::string& file) { return std::make_unique<RecordFile>(file); }

}  // namespace tutti
