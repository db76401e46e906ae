#include "data/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kTarBlock = 512;
// Of a long name or a pax header, which are read into memory.
constexpr int64_t kMostHeaderBytes = 1 << 20;

/// A tar file, open to read at any place.
class TarFile {
 public:
  explicit TarFile(const std::filesystem::path& path)
      : name_(path.string()), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
      const int problem = errno;
      if (descriptor_ >= 0) ::close(descriptor_);
      throw Error("{}: cannot open it ({})", name_, std::strerror(problem));
    }
    size_ = status.st_size;
  }
  ~TarFile() { ::close(descriptor_); }
  TarFile(const TarFile&) = delete;
  TarFile& operator=(const TarFile&) = delete;

  int64_t size() const { return size_; }
  void read(int64_t offset, int64_t count, char* to) const {
    for (int64_t done = 0; done < count;) {
      const ssize_t got = ::pread(descriptor_, to + done, static_cast<size_t>(count - done), offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error("{}: cannot read it ({})", name_, std::strerror(errno));
      if (got == 0) fail(offset + done, "it ends there, in the middle of a file");
      done += got;
    }
  }
  std::string read(int64_t offset, int64_t count) const {
    std::string content(static_cast<size_t>(count), '\0');
    read(offset, count, content.data());
    return content;
  }
  [[noreturn]] void fail(int64_t offset, const std::string& what) const {
    throw Error("{}: at byte {}: {}. Replace it with a fresh copy.", name_, offset, what);
  }

 private:
  const std::string name_;
  const int descriptor_;
  int64_t size_ = 0;
};

/// A header block as POSIX has it.
class TarHeader {
 public:
  std::array<char, kTarBlock> bytes{};

  bool is_zero() const {
    return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
  }
  char type() const { return bytes[156]; }
  std::string name() const {
    const bool is_ustar = std::string_view(bytes.data() + 257, 5) == "ustar" && bytes[262] == 0;
    const std::string prefix = is_ustar ? text(345, 155) : "";
    return prefix.empty() ? text(0, 100) : prefix + "/" + text(0, 100);
  }
  std::optional<int64_t> size() const { return number(124, 12); }
  /// The sum over the block, its own field taken as spaces.
  bool has_right_sum() const {
    int64_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      sum += i >= 148 && i < 156 ? int64_t{' '} : int64_t{static_cast<uint8_t>(bytes[i])};
    return number(148, 8) == sum;
  }

 private:
  std::string text(size_t at, size_t size) const { return {bytes.data() + at, ::strnlen(bytes.data() + at, size)}; }
  /// Octal digits, or GNU's binary form.
  std::optional<int64_t> number(size_t at, size_t size) const {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[at + i]); };
    if (byte(0) == 0x80) {
      int64_t value = 0;
      for (size_t i = 1; i < size; ++i) {
        if (value >= int64_t{1} << 54) return std::nullopt;
        value = value << 8 | byte(i);
      }
      return value;
    }
    std::string_view digits(bytes.data() + at, size);
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    digits = digits.substr(0, digits.find_first_of(std::string_view("\0 ", 2)));
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (error != std::errc() || rest != digits.data() + digits.size() || value < 0) return std::nullopt;
    return value;
  }
};

/// Takes path and size out of a pax header: lines of "LENGTH KEY=VALUE\n". False where it is none.
bool read_pax(std::string_view text, std::string& path, int64_t& size) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(rest - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n')
      return false;
    const std::string_view line = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "path") path = value;
    if (key != "size") continue;
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (problem != std::errc() || end != value.data() + value.size() || number < 0) return false;
    size = number;
  }
  return true;
}

}  // namespace

std::vector<TarMember> list_tar(const std::filesystem::path& path) {
  const TarFile file(path);
  std::vector<TarMember> members;
  std::string long_name;
  int64_t long_size = -1;  // -1: as the header says
  TarHeader header;
  for (int64_t at = 0;;) {
    if (at == file.size()) break;  // an end without empty blocks: some programs leave them out
    if (file.size() - at < kTarBlock) file.fail(at, "it ends there, in the middle of a header");
    file.read(at, kTarBlock, header.bytes.data());
    if (header.is_zero()) break;
    if (!header.has_right_sum()) file.fail(at, "not the header of a tar file: its checksum is wrong");
    const bool is_described =
        header.type() != 'L' && header.type() != 'K' && header.type() != 'x' && header.type() != 'g';
    const std::optional<int64_t> size = is_described && long_size >= 0 ? long_size : header.size();
    const int64_t content = at + kTarBlock;
    if (!size || *size > file.size() - content) file.fail(at, "a file is said to be larger than what is left");
    if (header.type() == 'L' || header.type() == 'x') {
      if (*size > kMostHeaderBytes) file.fail(at, "a header of more than a megabyte");
      const std::string text = file.read(content, *size);
      if (header.type() == 'L')
        long_name = text.substr(0, text.find('\0'));
      else if (!read_pax(text, long_name, long_size))
        file.fail(content, "a pax header that cannot be read");
    } else if (is_described) {
      const bool is_file = header.type() == '0' || header.type() == '\0' || header.type() == '7';
      if (header.type() == 'S') file.fail(at, "a sparse file, which is not read: pack it anew");
      if (is_file) members.push_back({long_name.empty() ? header.name() : long_name, content, *size});
      long_name.clear();
      long_size = -1;
    }
    at = std::min(content + (*size + kTarBlock - 1) / kTarBlock * kTarBlock, file.size());
  }
  return members;
}

std::string read_tar_member(const std::filesystem::path& path, const TarMember& member) {
  return TarFile(path).read(member.offset, member.size);
}

}  // namespace tutti
