// Pictures in one folder per class: JPEG and PNG files of any size.

#include <algorithm>
#include <array>

#include "base/files.h"
#include "data/class_folders.h"
#include "data/folders.h"
#include "data/picture_samples.h"
#include "data/sources.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKindOfFiles = "JPEG or PNG picture";

FileUse use_of_picture(std::string_view ending) {
  static constexpr std::array<std::string_view, 4> kTaken{".jpg", ".jpeg", ".jpe", ".png"};
  // Pictures all the same: left out silently, they would be missed late.
  static constexpr std::array<std::string_view, 10> kRefused{".bmp",  ".gif",  ".tif", ".tiff", ".webp",
                                                             ".heic", ".avif", ".ppm", ".pgm",  ".jp2"};
  const auto is_in = [&](const auto& endings) {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  return is_in(kTaken) ? FileUse::taken : is_in(kRefused) ? FileUse::refused : FileUse::ignored;
}

class PicturesInFolders : public PictureSource {
 public:
  explicit PicturesInFolders(ClassFiles files) : files_(std::move(files)) {}
  int64_t size() const override { return static_cast<int64_t>(files_.files.size()); }
  int64_t label(int64_t index) const override { return files_.labels[static_cast<size_t>(index)]; }
  std::string name(int64_t index) const override { return path(index).string(); }
  std::string read(int64_t index) const override { return read_file(path(index)); }

 private:
  fs::path path(int64_t index) const { return files_.folder / files_.files[static_cast<size_t>(index)]; }

  const ClassFiles files_;
};

}  // namespace

TrainTest open_image_folder(const DataOptions& options) {
  const fs::path folder = require_data_folder(
      options.folder, "image-folder",
      "Put the JPEG or PNG pictures of each class into a folder of its own there, or name such a folder with "
      "--data-path.");
  ClassFolders found = list_class_folders(folder, options.val_fraction, kKindOfFiles, use_of_picture);
  return open_pictures(options, std::make_shared<PicturesInFolders>(std::move(found.train)),
                       std::make_shared<PicturesInFolders>(std::move(found.test)), found.class_names);
}

}  // namespace tutti
