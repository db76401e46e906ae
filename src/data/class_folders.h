#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Files in one folder per class. Files are named from the folder's own place: "cat/1.jpg".
struct ClassFiles {
  std::filesystem::path folder;
  std::vector<std::string> files;
  std::vector<int32_t> labels;  // of each file
};

/// Files with a class each, for training and for the test.
struct ClassFolders {
  std::vector<std::string> class_names;  // the folders' names, sorted
  ClassFiles train;
  ClassFiles test;
};

/// What to do with a file, by its name's ending in small letters (".jpg").
enum class FileUse { taken, ignored, refused };

/// How DIR is read: DIR/train/CLASS/… and DIR/val/CLASS/… (or test/), else DIR/CLASS/…, of which `held_out` (0: a
/// fifth) is the test. Files may lie in folders below a class; those whose names begin with a dot are passed over.
/// Throws Error naming the folder or file that does not fit; `kind` is what a file should be ("JPEG or PNG picture").
ClassFolders list_class_folders(const std::filesystem::path& folder, double held_out, const std::string& kind,
                                FileUse (*use)(std::string_view ending));

}  // namespace tutti
