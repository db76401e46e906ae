#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tutti {

/// One named tensor in the memory of its owner, its elements in row-major order without gaps.
/// `dtype` is safetensors' word: "F32", "BF16", "F16", "F64", "I64", "U8", "BOOL", …; not its types below one byte.
struct NamedArray {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // may be null when bytes is 0
  std::size_t bytes = 0;       // elements × size of one; checked
};

/// Writes a .safetensors file (as Hugging Face's library reads it): temporary name, flushed, renamed. A reader sees the
/// old file or the whole new one, and when Error is thrown (say, a full disk) the old file stays and nothing is left
/// beside it. Arrays are written from where they are, without a copy of them all in memory. One writer per path at a
/// time. `metadata` becomes the header's __metadata__. Returns the SHA-256 of the file in hexadecimal.
///
/// The same arguments give the same bytes. In the file, larger elements come first, else in the given order, so that
/// every array begins at a multiple of its element's size.
std::string write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                              const std::map<std::string, std::string>& metadata = {});

/// A .safetensors file in memory. Throws Error naming the path and what is wrong with it (missing, truncated, a header
/// that is not JSON or too large, names that come twice, offsets that overlap, leave gaps or reach past the end,
/// unknown dtypes, sizes that do not fit the shapes). Movable: the arrays stay where they are.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// In the order of the data in the file. Valid as long as this object, or the one it was moved to. Each array's
  /// memory is aligned to 64 bytes, whatever its place in the file.
  const std::vector<NamedArray>& arrays() const { return arrays_; }
  const NamedArray* find(const std::string& name) const;  // nullptr when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& sha256() const { return sha256_; }  // of the whole file

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;  // of all arrays
  std::vector<NamedArray> arrays_;
  std::unordered_map<std::string, std::size_t> index_;  // name → position in arrays_
  std::map<std::string, std::string> metadata_;
  std::string sha256_;
};

}  // namespace tutti
