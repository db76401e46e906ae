#include "data/png.h"

#include "data/png_files.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {
namespace {

/// The input with right checksums in its chunks: few mutations would get past them.
std::string with_checksums(std::string png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    uint32_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(png[at + i]);
    if (length > png.size() - at - 12) break;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(png.data() + at + 4), length + 4);
    png.replace(at + 8 + length, 4, test::big_endian(static_cast<uint32_t>(crc)));
    at += 12 + length;
  }
  return png;
}

}  // namespace

static std::string fuzz_png(std::string_view input) {
  static MemoryFile file;
  const std::string mended = with_checksums(std::string(input));
  return outcome([&] { read_png_size(file.hold(mended)); }) + outcome([&] { decode_png_rgb(input, "x"); }) +
         outcome([&] { decode_png_rgb(mended, "x"); }) + outcome([&] { decode_png_grey(mended, "x"); });
}

static std::vector<std::string> png_seeds() {
  using test::png_chunk;
  using test::png_file;
  using test::PngColour;
  const std::string rgb = png_file(2, 2, PngColour::kRgb, "abcdefghijkl");
  const std::string palette = "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", std::string("\0\0\0\2\0\0\0\1\1\3\0\0\0", 13)) +
                              png_chunk("PLTE", "abcdef") + png_chunk("tRNS", "\x80") +
                              png_chunk("IDAT", std::string("\x78\x9c\x63\x68\0\0\0\x82\0\x81", 10)) +
                              png_chunk("IEND", "");
  std::string interlaced = png_file(3, 3, PngColour::kGrey, "abcdefghi");
  interlaced[28] = 1;
  return {rgb,
          palette,
          interlaced,
          png_file(3, 1, PngColour::kGrey, "abc"),
          png_file(1, 1, PngColour::kRgba, "abcd"),
          png_file(1, 2, PngColour::kGreyAlpha, "abcdefgh", 16),
          png_chunk("gAMA", std::string("\0\0\xb1\x8f", 4)),
          png_chunk("sBIT", "\x05\x06\x05"),
          png_chunk("iCCP", std::string("p\0\0\x78\x9c\x03\0\0\0\0\1", 11)),
          png_chunk("cHRM", std::string(32, '\1'))};
}

static const Target kPng("png", fuzz_png, png_seeds);

}  // namespace tutti::fuzz
