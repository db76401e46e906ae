#include <filesystem>

#include "base/error.h"
#include "data/folders.h"
#include "data/idx.h"
#include "data/pixels.h"
#include "data/sources.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

class Mnist : public Dataset {
 public:
  Mnist(const fs::path& images_path, const fs::path& labels_path)
      : images_(read_idx_images(images_path)), labels_(read_idx_labels(labels_path, kClasses)) {
    check_idx_pair(images_path, images_, labels_path, labels_);
    if (images_.rows != kDigitSide || images_.columns != kDigitSide) {
      throw Error("{}: images of {}x{} pixels; mnist has {}x{}", images_path.string(), images_.rows, images_.columns,
                  kDigitSide, kDigitSide);
    }
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return images_.count; }
  SampleTraits traits() const override { return digit_traits(); }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    store_digit(images_.pixels.data() + pick.index * kDigitPixels, labels_[pick.index], row, batch);
  }

 private:
  const std::string name_ = "mnist";
  const IdxImages images_;
  const std::vector<uint8_t> labels_;
};

/// The file under any of the names it is distributed with, or an empty path.
fs::path find_file(const fs::path& folder, const std::string& stem, const std::string& suffix) {
  for (const char* separator : {"-", "."}) {
    for (const char* extension : {"", ".gz"}) {
      const fs::path path = folder / (stem + separator + suffix + extension);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path;
    }
  }
  return {};
}

/// The first candidate that holds at least one of the four files.
fs::path find_folder(const DataOptions& options) {
  const std::vector<fs::path> folders = data_folders(options.folder, "mnist");
  for (const fs::path& folder : folders) {
    for (const char* stem : {"train", "t10k"}) {
      if (!find_file(folder, std::string(stem) + "-images", "idx3-ubyte").empty() ||
          !find_file(folder, std::string(stem) + "-labels", "idx1-ubyte").empty()) {
        return folder;
      }
    }
  }
  throw Error(
      "mnist: no files found. Looked in:{}\n"
      "Put train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte "
      "(each may end in .gz) into one of these folders, or name their folder with --data-folder or its parent with "
      "$TUTTI_DATA. `--data digits` needs no files.",
      list_folders(folders));
}

fs::path require_file(const fs::path& folder, const std::string& stem, const std::string& suffix) {
  fs::path path = find_file(folder, stem, suffix);
  if (path.empty()) {
    throw Error("mnist: {} has no {}-{} (with or without .gz). Put it beside the other files there.", folder.string(),
                stem, suffix);
  }
  return path;
}

}  // namespace

TrainTest open_mnist(const DataOptions& options) {
  const fs::path folder = find_folder(options);
  const auto open = [&folder](const std::string& stem) {
    return std::make_shared<Mnist>(require_file(folder, stem + "-images", "idx3-ubyte"),
                                   require_file(folder, stem + "-labels", "idx1-ubyte"));
  };
  return {open("train"), open("t10k")};
}

}  // namespace tutti
