#pragma once

#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace tutti::test {

/// How a JPEG file is made.
struct JpegKind {
  int components = 3;  // 1: grey, 3: colours, 4: inverted CMYK
  int sampling = 2;    // chroma is so many times coarser, both ways
  bool is_progressive = false;
  int orientation = 0;  // 0: no EXIF
  int quality = 90;
};

inline std::string exif_segment(int orientation) {
  return std::string("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24) + static_cast<char>(orientation) +
         std::string(7, '\0');
}

/// A JPEG file; `pixel(x, y, c)` is 0 to 255.
template <typename Pixel>
std::string jpeg_file(int width, int height, const JpegKind& kind, Pixel pixel) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = kind.components;
  info.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : kind.components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = kind.components == 3 ? kind.sampling : 1;
  if (kind.is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (kind.orientation != 0) {
    const std::string exif = exif_segment(kind.orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::string row(static_cast<std::size_t>(width * kind.components), '\0');
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < kind.components; ++c)
        row[static_cast<std::size_t>(x * kind.components + c)] = static_cast<char>(pixel(x, y, c));
    auto* at = reinterpret_cast<JSAMPROW>(row.data());
    jpeg_write_scanlines(&info, &at, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string content(reinterpret_cast<const char*>(memory), size);
  std::free(memory);  // NOLINT: libjpeg's malloc
  return content;
}

/// Waves of colours: no two parts are alike.
inline int wave(int x, int y, int c) { return (x * (3 + c) + y * (7 - 2 * c) + (x * y) / 16) % 256; }

/// A picture of one colour.
inline std::string plain_jpeg(int width, int height, int red, int green, int blue, const JpegKind& kind = {}) {
  return jpeg_file(width, height, kind, [&](int, int, int c) { return c == 0 ? red : c == 1 ? green : blue; });
}

}  // namespace tutti::test
