// Pictures and, for each, a mask of what is foreground: images/NAME.png and masks/NAME.png.
//
// A fifth of the pairs, those whose names have the smallest hashes, is held out as the test. Files are decoded when
// they are asked for, by the loader's threads. Training pictures are flipped and transposed at random, anew in each
// epoch. Pictures of different sizes, or with --image-size, are squeezed into squares of one.

#include <algorithm>
#include <array>
#include <map>

#include "base/files.h"
#include "data/folders.h"
#include "data/picture_input.h"
#include "data/picture_view.h"
#include "data/png.h"
#include "data/random.h"
#include "data/sources.h"
#include "data/split.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::array<float, 256> make_levels() {
  std::array<float, 256> levels{};
  for (int byte = 0; byte < 256; ++byte) levels[byte] = static_cast<float>(byte) / 255;
  return levels;
}

constexpr std::array<float, 256> kLevels = make_levels();

// Of pictures that have no common size.
constexpr int64_t kUsualSquare = 256;

struct Pair {
  fs::path image;
  fs::path mask;
};

/// The PNG files of a folder by their name without extension.
std::map<std::string, fs::path> png_files(const fs::path& folder) {
  std::error_code error;
  std::map<std::string, fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".png" || path.extension() == ".PNG") files[path.stem().string()] = path;
  }
  if (error) throw Error("{}: cannot list it ({})", folder.string(), error.message());
  return files;
}

/// All pairs of a folder, checked: each image has its mask, of its size. `size` becomes that of all, or 0 where they
/// differ.
std::map<std::string, Pair> list_pairs(const fs::path& folder, PngSize& size) {
  const auto images = png_files(folder / "images");
  auto masks = png_files(folder / "masks");
  std::map<std::string, Pair> pairs;
  for (const auto& [stem, image] : images) {
    const auto mask = masks.find(stem);
    if (mask == masks.end()) {
      throw Error("{}: an image without a mask: there is no {}", image.string(),
                  (folder / "masks" / (stem + ".png")).string());
    }
    const PngSize image_size = read_png_size(image);
    if (pairs.empty()) size = image_size;
    if (image_size != size) size = {};
    const PngSize mask_size = read_png_size(mask->second);
    if (mask_size != image_size) {
      throw Error("{}: {}x{} pixels, but its image {} has {}x{}", mask->second.string(), mask_size.width,
                  mask_size.height, image.string(), image_size.width, image_size.height);
    }
    pairs[stem] = {image, mask->second};
    masks.erase(mask);
  }
  if (!masks.empty()) {
    throw Error("{}: a mask without an image: there is no {}", masks.begin()->second.string(),
                (folder / "images" / (masks.begin()->first + ".png")).string());
  }
  if (pairs.size() < 2) {
    throw Error("{}: {} images with masks; one to train and one to test are the least", folder.string(), pairs.size());
  }
  return pairs;
}

/// Where in a picture its result's pixels come from: the first, and how far the next in a row and in a column lie.
struct Walk {
  int64_t first = 0;
  int64_t across;
  int64_t down;

  explicit Walk(PngSize size) : across(1), down(size.width) {}
  Walk(PngSize size, PortableRandom random) : Walk(size) {
    const uint64_t choice = random.below(8);
    if ((choice & 1) != 0) {
      first += across * (size.width - 1);
      across = -across;
    }
    if ((choice & 2) != 0) {
      first += down * (size.height - 1);
      down = -down;
    }
    if ((choice & 4) != 0 && size.width == size.height) std::swap(across, down);
  }
};

/// The colours of a picture in so many pixels.
std::vector<uint8_t> squeeze(const PngPixels& image, PngSize to) {
  const RgbPixels pixels{image.size.width, image.size.height, image.bytes};
  return show(pixels, whole_view(pixels.width, pixels.height), to.width, to.height).bytes;
}

/// A mask in so many pixels, each of which is one of the mask's.
std::vector<uint8_t> squeeze_mask(const PngPixels& mask, PngSize to) {
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(to.width * to.height));
  for (int64_t y = 0; y < to.height; ++y) {
    const int64_t row = (2 * y + 1) * mask.size.height / (2 * to.height);
    for (int64_t x = 0; x < to.width; ++x)
      bytes.push_back(
          mask.bytes[static_cast<size_t>(row * mask.size.width + (2 * x + 1) * mask.size.width / (2 * to.width))]);
  }
  return bytes;
}

class Segmentation : public Dataset {
 public:
  /// `squeezes`: pictures may have other sizes than `size`.
  Segmentation(std::string name, std::vector<Pair> pairs, PngSize size, bool squeezes, bool augment, uint64_t seed)
      : name_(std::move(name)),
        pairs_(std::move(pairs)),
        size_(size),
        squeezes_(squeezes),
        augment_(augment),
        seed_(seed) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(pairs_.size()); }
  SampleTraits traits() const override { return {SampleKind::segmentation, {3, size_.height, size_.width}, 0, 0, 0}; }
  bool varies() const override { return augment_; }
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    batch.inputs[0][row].copy_(read_picture(content, input, traits().shape).div_(255));
    batch.target[row].zero_();
  }

  void load(Pick pick, int64_t row, Batch& batch) const override {
    const Pair& pair = pairs_[static_cast<size_t>(pick.index)];
    PngPixels image = decode_png_rgb(read_file(pair.image), pair.image.string());
    PngPixels mask = decode_png_grey(read_file(pair.mask), pair.mask.string());
    const PngSize expected = squeezes_ ? image.size : size_;
    if (image.size != expected || mask.size != expected) {
      throw Error("{}: changed while it was in use", (image.size != expected ? pair.image : pair.mask).string());
    }
    if (image.size != size_) {
      mask.bytes = squeeze_mask(mask, size_);
      image.bytes = squeeze(image, size_);
    }
    const Walk walk =
        augment_
            ? Walk(size_, PortableRandom(seed_, static_cast<uint64_t>(pick.epoch), static_cast<uint64_t>(pick.index)))
            : Walk(size_);
    const int64_t area = size_.width * size_.height;
    float* const colours = batch.inputs[0].data_ptr<float>() + row * 3 * area;
    float* const target = batch.target.data_ptr<float>() + row * area;
    int64_t to = 0;
    for (int64_t y = 0; y < size_.height; ++y) {
      int64_t from = walk.first + y * walk.down;
      for (int64_t x = 0; x < size_.width; ++x, ++to, from += walk.across) {
        for (int64_t c = 0; c < 3; ++c) colours[c * area + to] = kLevels[image.bytes[from * 3 + c]];
        target[to] = mask.bytes[from] != 0 ? 1.F : 0.F;
      }
    }
  }

 private:
  const std::string name_;
  const std::vector<Pair> pairs_;
  const PngSize size_;
  const bool squeezes_;
  const bool augment_;
  const uint64_t seed_;
};

TrainTest open_folder(const DataOptions& options, const std::string& folder_name) {
  const fs::path folder = require_data_folder(
      options.folder, folder_name,
      "Put pictures into its images/ and masks (0: background, else foreground) of the same names into its masks/, all "
      "PNG, or name such a folder with --data-path.");
  PngSize size;
  std::vector<std::pair<uint64_t, Pair>> by_hash;
  for (const auto& [stem, pair] : list_pairs(folder, size)) by_hash.emplace_back(hash_name(stem), pair);
  const bool squeezes = options.image_size > 0 || size == PngSize();
  if (squeezes) size.width = size.height = options.image_size > 0 ? options.image_size : kUsualSquare;
  std::stable_sort(by_hash.begin(), by_hash.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t held_out = (by_hash.size() + 4) / 5;
  std::vector<Pair> train;
  std::vector<Pair> test;
  for (size_t i = 0; i < by_hash.size(); ++i) (i < held_out ? test : train).push_back(by_hash[i].second);
  return {std::make_shared<Segmentation>(options.name, std::move(train), size, squeezes, options.augment.value_or(true),
                                         options.seed),
          std::make_shared<Segmentation>(options.name, std::move(test), size, squeezes, false, options.seed)};
}

}  // namespace

TrainTest open_folder_segmentation(const DataOptions& options) { return open_folder(options, "folder-segmentation"); }
TrainTest open_nuclei(const DataOptions& options) { return open_folder(options, "dsb2018-nuclei-256"); }

}  // namespace tutti
