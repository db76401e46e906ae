#include "data/exif.h"

#include <cstddef>
#include <cstdint>

namespace tutti {
namespace {

using namespace std::literals;

constexpr int kUpright = 1;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr std::size_t kEntryBytes = 12;

/// Numbers of a TIFF structure in its byte order; 0 beyond its end.
class TiffNumbers {
 public:
  TiffNumbers(std::string_view bytes, bool is_big_endian) : bytes_(bytes), is_big_endian_(is_big_endian) {}
  uint32_t read(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<uint8_t>(bytes_[at + (is_big_endian_ ? i : size - 1 - i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_big_endian_;
};

}  // namespace

int exif_orientation(std::string_view segment) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  if (segment.substr(0, kExif.size()) != kExif) return kUpright;
  const std::string_view tiff = segment.substr(kExif.size());
  const std::string_view order = tiff.substr(0, 2);
  if (order != "II" && order != "MM") return kUpright;
  const TiffNumbers numbers(tiff, order == "MM");
  const std::size_t directory = numbers.read(4, 4);
  const uint32_t entries = numbers.read(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= tiff.size()) break;
    if (numbers.read(entry, 2) != kOrientationTag || numbers.read(entry + 2, 2) != kShort) continue;
    const uint32_t value = numbers.read(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

}  // namespace tutti
