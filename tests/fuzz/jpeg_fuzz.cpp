#include "data/jpeg_files.h"
#include "data/picture_view.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_jpeg(std::string_view input) {
  const auto show_part = [input](const PictureView& part) {
    return outcome([&] {
      PictureFile file(input, "x");
      show(file, part, 8, 8);
    });
  };
  std::string result = outcome([&] {
    PictureFile file(input, "x");
    shrink(file, 16);
  });
  int64_t width = 0, height = 0;
  outcome([&] {
    const PictureFile file(input, "x");
    width = file.width();
    height = file.height();
  });
  if (width == 0) return result;
  PortableRandom random(input.size());
  return result + show_part(random_view(width, height, 0.08, random)) + show_part(centre_view(width, height, 9, 8));
}

static std::vector<std::string> jpeg_seeds() {
  using test::jpeg_file;
  using test::JpegKind;
  using test::wave;
  JpegKind turned{3, 2, true};
  turned.orientation = 6;
  std::string restarts = jpeg_file(20, 9, {3, 1}, wave);
  restarts.insert(2, std::string("\xff\xdd\0\4\0\1", 6));
  return {jpeg_file(40, 24, {}, wave),
          jpeg_file(17, 33, turned, wave),
          jpeg_file(16, 16, {1}, wave),
          jpeg_file(9, 9, {4}, wave),
          restarts,
          test::exif_segment(3),
          std::string("\xff\xc2\0\x0b\x08\xff\xdc\xff\xdc\1\1\x11\0", 13),
          std::string("\xff\xee\0\x0e"
                      "Adobe\0\x64\0\0\0\0\2",
                      16)};
}

static const Target kJpeg("jpeg", fuzz_jpeg, jpeg_seeds);

}  // namespace tutti::fuzz
