#include "train/records.h"

#include <fcntl.h>
#include <torch/version.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/build_info.h"
#include "base/error.h"

namespace tutti {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

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

nlohmann::json describe_environment() {
  return {{"tutti", build_version()},  {"commit", build_commit()},
          {"build", build_type()},     {"compiler", build_compiler()},
          {"libtorch", TORCH_VERSION}, {"host", host_name()},
          {"cpu", cpu_model()},        {"cores", std::thread::hardware_concurrency()}};
}

}  // namespace tutti
