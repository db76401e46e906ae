#include "base/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "base/files.h"
#include "base/safetensors_format.h"
#include "base/sha256.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kAlignment = 64;

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<uint64_t> offsets;  // begin and end
};

/// Takes the header's parts as the JSON parser meets them and stops at the first that has no business there. No tree
/// of JSON values is built: a hostile header (100 MB of brackets) would make it take gigabytes.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;  // why reading stopped, for people

  bool null() override { return refuse("null"); }
  bool boolean(bool value) override { return refuse(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return refuse(std::to_string(value)); }  // negative
  bool number_float(number_float_t, const string_t& text) override {
    return refuse(text.substr(0, 40));
  }  // or > 64 bits
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape && value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      entries.back().shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && entries.back().offsets.size() < 2) {
      entries.back().offsets.push_back(value);
      return true;
    }
    return refuse(std::to_string(value));
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = value;
      return true;
    }
    if (place_ == Place::kEntry && key_ == "dtype") {
      entries.back().dtype = value;
      return true;
    }
    return refuse("the text " + in_quotes(value));
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kHeader;
      return true;
    }
    if (place_ != Place::kHeader) return refuse("an object");
    if (key_ == kMetadataKey) {
      place_ = Place::kMetadata;
    } else {
      place_ = Place::kEntry;
      entries.emplace_back();
      entries.back().name = key_;
      has_field_.fill(false);
    }
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    bool is_new = true;
    if (place_ == Place::kHeader) {
      is_new = names_.insert(value).second;
    } else if (place_ == Place::kMetadata) {
      is_new = metadata.count(value) == 0;
    } else {
      const auto field = std::find(std::begin(kFields), std::end(kFields), value);
      if (field == std::end(kFields)) return stop(fmt::format("unknown field {}{}", in_quotes(value), where()));
      bool& has = has_field_[static_cast<std::size_t>(field - std::begin(kFields))];
      is_new = !has;
      has = true;
    }
    return is_new || stop(fmt::format("{} comes twice{}", in_quotes(value), where()));
  }

  bool end_object() override {
    if (place_ == Place::kEntry) {
      for (std::size_t i = 0; i < std::size(kFields); ++i) {
        if (!has_field_[i]) return stop(fmt::format("no \"{}\"{}", kFields[i], where()));
      }
    }
    place_ = place_ == Place::kHeader ? Place::kOutside : Place::kHeader;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kEntry && key_ == "shape") {
      place_ = Place::kShape;
    } else if (place_ == Place::kEntry && key_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return refuse("a list");
    }
    return true;
  }

  bool end_array() override {
    const bool was_offsets = place_ == Place::kOffsets;
    place_ = Place::kEntry;
    if (was_offsets && entries.back().offsets.size() != 2) return stop("data_offsets are not two numbers" + where());
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return stop(fmt::format("the header is not JSON (byte {} of it)", position));
  }

 private:
  static constexpr std::string_view kFields[] = {"dtype", "shape", "data_offsets"};
  enum class Place { kOutside, kHeader, kMetadata, kEntry, kShape, kOffsets };

  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool refuse(const std::string& what) {
    if (place_ == Place::kOutside) return stop("the header is not a JSON object");
    return stop(fmt::format("{} has no place{}", what, where()));
  }
  std::string where() const {
    switch (place_) {
      case Place::kMetadata:
        return fmt::format(" in the header's {} (key {})", kMetadataKey, in_quotes(key_));
      case Place::kEntry:
        return " in the header's entry of " + in_quotes(entries.back().name);
      case Place::kShape:
        return " in the shape of " + in_quotes(entries.back().name);
      case Place::kOffsets:
        return " in the data_offsets of " + in_quotes(entries.back().name);
      default:
        return key_.empty() ? " in the header" : fmt::format(" in the header (at {})", in_quotes(key_));
    }
  }

  Place place_ = Place::kOutside;
  std::string key_;  // the latest
  std::unordered_set<std::string> names_;
  std::array<bool, std::size(kFields)> has_field_ = {};  // of the latest entry
};

/// The header's entries in the order of their data, checked against each other and the size of the data.
/// Returns what is wrong; empty when all is well.
std::string read_header(std::string_view text, uint64_t data_bytes, HeaderReader& header) {
  if (text.empty() || text.front() != '{') return "the header does not begin with {";
  // The parser takes a zero byte for the end of its input and would not look at what follows.
  if (text.find('\0') != std::string_view::npos) return "the header has a zero byte in it";
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &header)) return header.problem;

  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) { return a.offsets < b.offsets; });
  uint64_t covered = 0;
  for (const HeaderEntry& entry : header.entries) {
    const uint64_t begin = entry.offsets[0];
    const uint64_t end = entry.offsets[1];
    const auto element = element_bytes(entry.dtype);
    if (!element)
      return fmt::format("array {} has the unknown dtype {}", in_quotes(entry.name), in_quotes(entry.dtype));
    const auto expected = bytes_of_shape(entry.shape, *element);
    if (!expected)
      return fmt::format("array {} has an impossible shape: {}", in_quotes(entry.name), shape_text(entry.shape));
    if (end < begin)
      return fmt::format("array {} ends (at {}) before it begins (at {})", in_quotes(entry.name), end, begin);
    if (end - begin != *expected) {
      return fmt::format("array {} has {} bytes of data, but {} {} takes {}", in_quotes(entry.name), end - begin,
                         entry.dtype, shape_text(entry.shape), *expected);
    }
    if (begin != covered) {
      return fmt::format("the data of array {} begins at {} and {} {}", in_quotes(entry.name), begin,
                         begin < covered ? "overlaps the array before it, which ends at"
                                         : "leaves a gap after the array before it, which ends at",
                         covered);
    }
    if (end > data_bytes) {
      return fmt::format("array {} reaches to byte {} of the data, but the file holds only {}; it may be truncated",
                         in_quotes(entry.name), end, data_bytes);
    }
    covered = end;
  }
  if (covered != data_bytes) return fmt::format("{} bytes at the end belong to no array", data_bytes - covered);
  return "";
}

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void SafetensorsFile::Free::operator()(void* memory) const { std::free(memory); }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  // O_NONBLOCK: a named pipe is refused below instead of waited for.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw Error("cannot read {}: it is not a regular file", path.string());
  const uint64_t file_bytes = static_cast<uint64_t>(status.st_size);

  const auto refuse = [&](const std::string& why) {
    throw Error("{} is not a usable safetensors file: {}", path.string(), why);
  };
  Sha256 hash;
  const auto read = [&](void* memory, std::size_t bytes) {
    char* next = static_cast<char*>(memory);
    while (bytes > 0) {
      const ssize_t got = ::read(file.get(), next, std::min(bytes, kPieceBytes));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
      if (got == 0) throw Error("cannot read {}: it became shorter while it was read", path.string());
      hash.update(next, static_cast<std::size_t>(got));
      next += got;
      bytes -= static_cast<std::size_t>(got);
    }
  };

  try {
    uint64_t header_bytes = 0;
    if (file_bytes < sizeof header_bytes) refuse(fmt::format("it has only {} bytes", file_bytes));
    read(&header_bytes, sizeof header_bytes);
    const uint64_t rest = file_bytes - sizeof header_bytes;
    if (header_bytes > kMaxHeaderBytes) {
      refuse(fmt::format("its first 8 bytes announce a header of {}; the format allows {}",
                         readable_bytes(header_bytes), readable_bytes(kMaxHeaderBytes)));
    }
    if (header_bytes > rest)
      refuse(fmt::format("its header takes {} bytes, but only {} follow; it may be truncated", header_bytes, rest));
    std::string text(header_bytes, '\0');
    read(text.data(), text.size());
    HeaderReader header;
    if (const std::string problem = read_header(text, rest - header_bytes, header); !problem.empty()) refuse(problem);

    uint64_t memory_bytes = kAlignment;  // so that it is never nothing
    for (const HeaderEntry& entry : header.entries) memory_bytes += aligned(entry.offsets[1] - entry.offsets[0]);
    memory_.reset(std::aligned_alloc(kAlignment, memory_bytes));
    if (!memory_) throw std::bad_alloc();
    char* next = static_cast<char*>(memory_.get());
    arrays_.reserve(header.entries.size());
    for (HeaderEntry& entry : header.entries) {
      const std::size_t bytes = entry.offsets[1] - entry.offsets[0];
      read(next, bytes);
      index_.emplace(entry.name, arrays_.size());
      arrays_.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape), next, bytes});
      next += aligned(bytes);
    }
    metadata_ = std::move(header.metadata);
  } catch (const std::bad_alloc&) {
    throw Error("cannot read {}: not enough memory for its {}", path.string(), readable_bytes(file_bytes));
  }
  sha256_ = hash.hex();
}

const NamedArray* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &arrays_[found->second];
}

}  // namespace tutti
