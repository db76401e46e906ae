#include "base/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/device_files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(int fd, const std::filesystem::path& path) : fd_(fd) {
    if (fd_ < 0) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

Descriptor open_to_read(const std::filesystem::path& path) {
  return {::open(path.c_str(), O_RDONLY | O_CLOEXEC), path};
}

void put_all(const Descriptor& file, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t put = ::write(file.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw Error("cannot write {}: {}", path.string(), std::strerror(errno));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

bool is_device_file(const std::filesystem::path& path) {
  struct stat state {};
  return ::stat(path.c_str(), &state) == 0 &&
         (S_ISCHR(state.st_mode) || S_ISBLK(state.st_mode) || S_ISFIFO(state.st_mode));
}

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file = open_to_read(path);
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

int create_new_file(const std::filesystem::path& temporary, Readers readers) {
  ::unlink(temporary.c_str());
  return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, readers == Readers::owner ? 0600 : 0644);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content, Readers readers) {
  if (is_device_file(path)) {  // root could put a file in its place
    put_all({::open(path.c_str(), O_WRONLY | O_CLOEXEC), path}, content, path);
    return;
  }
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    const Descriptor file(create_new_file(temporary, readers), temporary);
    put_all(file, content, path);
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
  const Descriptor file = open_to_read(path);
  // EINVAL: a file system that cannot flush folders; nothing more can be done there.
  if (::fsync(file.get()) != 0 && errno != EINVAL)
    throw Error("cannot flush {}: {}", path.string(), std::strerror(errno));
}

void make_folders(const std::filesystem::path& path, Readers readers) {
  std::filesystem::path folder;
  for (const auto& part : path) {
    folder /= part;
    if (::mkdir(folder.c_str(), readers == Readers::owner ? 0700 : 0755) == 0) continue;
    const int reason = errno;  // of a folder that is there, also one on a disk that cannot be written to
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
      throw Error("cannot create the folder {}: {}", path.string(), std::strerror(reason == EEXIST ? ENOTDIR : reason));
  }
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
