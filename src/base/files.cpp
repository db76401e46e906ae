#include "base/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tutti/error.h"

namespace tutti {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  std::string content;
  std::error_code ignored;
  if (const auto size = std::filesystem::file_size(path, ignored); !ignored) content.reserve(size);
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    while (!content.empty()) {
      const ssize_t put = ::write(file.get(), content.data(), content.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw Error("cannot write {}: {}", path.string(), std::strerror(errno));
      content.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::fsync(file.get()) != 0) throw Error("cannot flush {}: {}", path.string(), std::strerror(errno));
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw Error("cannot rename {} to {}: {}", temporary.string(), path.string(), std::strerror(errno));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  flush_to_disk(path.parent_path().empty() ? "." : path.parent_path());
}

void flush_to_disk(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  // EINVAL: a file system that cannot flush folders; nothing more can be done there.
  if (::fsync(file.get()) != 0 && errno != EINVAL)
    throw Error("cannot flush {}: {}", path.string(), std::strerror(errno));
}

void make_folders(const std::filesystem::path& path) {
  std::error_code reason;
  std::filesystem::create_directories(path, reason);
  if (reason) throw Error("cannot create the folder {}: {}", path.string(), reason.message());
}

void remove_tree(const std::filesystem::path& path) noexcept {
  const auto remove_one = [](const char* name, const struct stat*, int, FTW*) {
    ::remove(name);
    return 0;  // go on with the rest
  };
  ::nftw(path.c_str(), remove_one, /*open folders at most=*/16, FTW_DEPTH | FTW_PHYS);
}

std::string readable_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace tutti
