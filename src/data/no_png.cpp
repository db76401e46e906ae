// Stands in for png.cpp in a build without libpng.

#include "data/png.h"
#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse(const std::string& name) {
  throw Error("{}: this build cannot read PNG files: libpng was not there when it was configured (Debian: libpng-dev)",
              name);
}

}  // namespace

PngSize read_png_size(const std::filesystem::path& path) { refuse(path.string()); }
PngPixels decode_png_rgb(std::string_view, const std::string& name) { refuse(name); }
PngPixels decode_png_grey(std::string_view, const std::string& name) { refuse(name); }
std::string encode_png_grey(const PngPixels&) {
  throw Error("this build cannot write PNG files: libpng was not there when it was configured (Debian: libpng-dev)");
}

}  // namespace tutti
