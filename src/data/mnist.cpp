#include <array>
#include <filesystem>

#include "data/deform.h"
#include "data/folders.h"
#include "data/idx.h"
#include "data/pixels.h"
#include "data/sources.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

/// How the images are shown.
enum class Variety {
  kNone,       // as they are
  kEachEpoch,  // deformed, another way in each epoch
  kManyTimes,  // bigmnist: kCopies deformed copies of each, the same in every epoch
};
constexpr int64_t kCopies = 120;

class Mnist : public Dataset {
 public:
  Mnist(std::string name, const fs::path& images_path, const fs::path& labels_path, Variety variety, uint64_t seed)
      : name_(std::move(name)),
        images_(read_idx_images(images_path)),
        labels_(read_idx_labels(labels_path, kClasses)),
        variety_(variety),
        seed_(seed),
        size_(variety == Variety::kManyTimes ? images_.count * kCopies : images_.count) {
    check_idx_pair(images_path, images_, labels_path, labels_);
    if (images_.rows != kDigitSide || images_.columns != kDigitSide) {
      throw Error("{}: images of {}x{} pixels; mnist has {}x{}", images_path.string(), images_.rows, images_.columns,
                  kDigitSide, kDigitSide);
    }
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }
  SampleTraits traits() const override { return digit_traits(); }
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    encode_digit(content, input, row, batch);
  }
  bool varies() const override { return variety_ == Variety::kEachEpoch; }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    const int64_t image = pick.index % images_.count;
    const uint8_t* pixels = images_.pixels.data() + image * kDigitPixels;
    std::array<uint8_t, kDigitPixels> deformed;
    if (variety_ != Variety::kNone) {
      const int64_t epoch = variety_ == Variety::kEachEpoch ? pick.epoch : 0;
      const PortableRandom random(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(pick.index));
      deform_digit(pixels, random, deformed.data());
      pixels = deformed.data();
    }
    store_digit(pixels, labels_[static_cast<size_t>(image)], row, batch);
  }

  /// Only the first `size` samples, where that is fewer.
  void shorten(int64_t size) { size_ = std::min(size_, size); }

 private:
  const std::string name_;
  const IdxImages images_;
  const std::vector<uint8_t> labels_;
  const Variety variety_;
  const uint64_t seed_;
  int64_t size_;
};

/// The file under any of the names it is distributed with, or an empty path.
fs::path find_file(const fs::path& folder, const std::string& stem, const std::string& suffix) {
  for (const char* separator : {"-", "."}) {
    for (const char* extension : {"", ".gz"}) {
      fs::path path = folder / stem;
      path.concat(separator).concat(suffix).concat(extension);
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
      "(each may end in .gz) into one of these folders, or name their folder with --data-path or its parent with "
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

TrainTest open_files(const DataOptions& options, const char* name, Variety variety) {
  const fs::path folder = find_folder(options);
  const auto open = [&](const std::string& stem, Variety how) {
    return std::make_shared<Mnist>(name, require_file(folder, stem + "-images", "idx3-ubyte"),
                                   require_file(folder, stem + "-labels", "idx1-ubyte"), how, options.seed);
  };
  const auto train = open("train", variety);
  const auto test = open("t10k", Variety::kNone);
  if (options.train_size > 0) train->shorten(options.train_size);
  if (options.test_size > 0) test->shorten(options.test_size);
  return {train, test};
}

}  // namespace

TrainTest open_mnist(const DataOptions& options) {
  return open_files(options, "mnist", options.augment.value_or(false) ? Variety::kEachEpoch : Variety::kNone);
}

TrainTest open_bigmnist(const DataOptions& options) { return open_files(options, "bigmnist", Variety::kManyTimes); }

}  // namespace tutti
