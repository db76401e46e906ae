#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/device_files.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/safetensors.h"
#include "base/safetensors_format.h"
#include "base/sha256.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// A JSON string. Throws nlohmann's type_error when the text is not UTF-8.
std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

/// The file under its temporary name, which goes away unless keep() is called.
class TemporaryFile {
 public:
  TemporaryFile(const std::filesystem::path& path, uint64_t bytes)
      : path_(path), temporary_(path.string() + ".tmp"), bytes_(bytes) {
    if (is_device_file(path)) throw Error("cannot write {}: it is no file. Name one", path.string());
    fd_ = Fd(create_new_file(temporary_, Readers::owner));
    if (fd_.get() < 0) throw Error("cannot open {}: {}", temporary_.string(), std::strerror(errno));
    created_ = true;
    // A disk without room says so here, before the rest of it is filled up for everybody else. Some file systems
    // cannot reserve; there the writes will tell.
    if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes_)) != 0 && errno == ENOSPC) fail(errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { remove(); }

  void write(const void* data, std::size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const std::size_t piece = std::min(bytes, kPieceBytes);
      hash_.update(next, piece);
      for (std::size_t done = 0; done < piece;) {
        const ssize_t put = ::write(fd_.get(), next + done, piece - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail(errno);
        done += static_cast<std::size_t>(put);
      }
      next += piece;
      bytes -= piece;
    }
  }

  /// Flushes and renames. Returns the SHA-256.
  std::string keep() {
    if (::fsync(fd_.get()) != 0) fail(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      throw Error("cannot rename {} to {}: {}", temporary_.string(), path_.string(), std::strerror(errno));
    created_ = false;
    flush_to_disk(path_.parent_path().empty() ? "." : path_.parent_path());
    return hash_.hex();
  }

 private:
  [[noreturn]] void fail(int reason) {
    remove();  // first: what it took is then free again, as the message says
    std::error_code unknown;
    const auto space = std::filesystem::space(path_.parent_path().empty() ? "." : path_.parent_path(), unknown);
    throw Error("cannot write {}: {} (the file needs {}{})", path_.string(), std::strerror(reason),
                readable_bytes(bytes_), unknown ? "" : "; free there: " + readable_bytes(space.available));
  }

  void remove() noexcept {
    if (!created_) return;
    // A file that is still open keeps its space even without a name.
    [[maybe_unused]] const int best_effort = ::ftruncate(fd_.get(), 0);
    ::unlink(temporary_.c_str());
    created_ = false;
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  uint64_t bytes_;
  Fd fd_;
  bool created_ = false;
  Sha256 hash_;
};

void check_array(const std::filesystem::path& path, const NamedArray& array) {
  const auto refuse = [&](const std::string& why) {
    throw Error("cannot write {}: array {} {}", path.string(), in_quotes(array.name), why);
  };
  if (array.name == kMetadataKey) refuse("has a name that the format reserves");
  const auto element = element_bytes(array.dtype);
  if (!element) refuse(fmt::format("has the dtype {}, which is not known here", in_quotes(array.dtype)));
  const auto expected = bytes_of_shape(array.shape, *element);
  if (!expected) refuse(fmt::format("has an impossible shape: {}", shape_text(array.shape)));
  if (*expected != array.bytes) {
    refuse(
        fmt::format("has {} bytes, but {} {} takes {}", array.bytes, array.dtype, shape_text(array.shape), *expected));
  }
  if (array.data == nullptr && array.bytes > 0) refuse("has no data");
}

std::string header_text(const std::vector<const NamedArray*>& arrays,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += fmt::format("\"{}\":{{", kMetadataKey);
    for (const auto& [key, value] : metadata) text += json_text(key) + ":" + json_text(value) + ",";
    text.back() = '}';
    text += ',';
  }
  uint64_t offset = 0;
  for (const NamedArray* array : arrays) {
    text += json_text(array->name) + ":{\"dtype\":\"" + array->dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < array->shape.size(); ++i) text += fmt::format("{}{}", i ? "," : "", array->shape[i]);
    text += fmt::format("],\"data_offsets\":[{},{}]}},", offset, offset + array->bytes);
    offset += array->bytes;
  }
  if (text.back() == ',') text.pop_back();
  text += '}';
  while (text.size() % 8 != 0) text += ' ';  // the length before it takes 8, so the data begins at a multiple of 8
  return text;
}

}  // namespace

std::string write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedArray*> ordered;
  std::unordered_set<std::string> names;
  uint64_t data_bytes = 0;
  for (const NamedArray& array : arrays) {
    check_array(path, array);
    if (!names.insert(array.name).second)
      throw Error("cannot write {}: two arrays have the name {}", path.string(), in_quotes(array.name));
    ordered.push_back(&array);
    data_bytes += array.bytes;
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const NamedArray* a, const NamedArray* b) {
    return *element_bytes(a->dtype) > *element_bytes(b->dtype);
  });

  std::string header;
  try {
    header = header_text(ordered, metadata);
  } catch (const nlohmann::json::type_error&) {
    throw Error("cannot write {}: a name or the metadata is not valid UTF-8", path.string());
  }
  if (header.size() > kMaxHeaderBytes) {
    throw Error("cannot write {}: its header would take {}, and readers accept {}", path.string(),
                readable_bytes(header.size()), readable_bytes(kMaxHeaderBytes));
  }

  const uint64_t header_bytes = header.size();
  TemporaryFile file(path, sizeof header_bytes + header_bytes + data_bytes);
  file.write(&header_bytes, sizeof header_bytes);
  file.write(header.data(), header.size());
  for (const NamedArray* array : ordered) file.write(array->data, array->bytes);
  return file.keep();
}

}  // namespace tutti
