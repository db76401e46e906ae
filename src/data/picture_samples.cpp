#include "data/picture_samples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "data/random.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kUsualSide = 224;
constexpr int64_t kLargestSide = 4096;
// Where so many pictures after one another cannot be read, more is wrong than single files.
constexpr int kMostReplacements = 100;

/// "0.485,0.456,0.406", or one number for all three channels.
std::array<double, 3> read_channels(const std::string& option, const std::string& text) {
  std::array<double, 3> numbers{};
  size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_done = false;
  while (!is_done && count < 3) {
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc() || !std::isfinite(numbers[count])) break;
    ++count;
    is_done = next == end;
    if (!is_done && *next != ',') break;
    at = next + (is_done ? 0 : 1);
  }
  if (!is_done || (count != 1 && count != 3))
    throw UsageError("{} '{}': give three numbers, for red, green and blue (0.485,0.456,0.406), or one for all", option,
                     text);
  if (count == 1) numbers[1] = numbers[2] = numbers[0];
  return numbers;
}

std::array<std::array<float, 256>, 3> make_channel_levels(const DataOptions& options) {
  const std::array<double, 3> mean = read_channels("--image-mean", options.image_mean);
  const std::array<double, 3> deviation = read_channels("--image-std", options.image_std);
  std::array<std::array<float, 256>, 3> levels{};
  for (size_t c = 0; c < 3; ++c) {
    if (deviation[c] <= 0) throw UsageError("--image-std '{}': all of it must be above 0", options.image_std);
    for (size_t byte = 0; byte < 256; ++byte)
      levels[c][byte] = static_cast<float>((static_cast<double>(byte) / 255 - mean[c]) / deviation[c]);
  }
  return levels;
}

/// Bytes, pixel by pixel, as floats, channel by channel.
void write_planes(const RgbPixels& pixels, bool is_mirrored, const std::array<std::array<float, 256>, 3>& levels,
                  float* to) {
  const int64_t area = pixels.width * pixels.height;
  for (int64_t y = 0; y < pixels.height; ++y) {
    const uint8_t* from = pixels.at(is_mirrored ? pixels.width - 1 : 0, y);
    const int64_t step = is_mirrored ? -3 : 3;
    for (int64_t x = 0; x < pixels.width; ++x, ++to, from += step) {
      to[0] = levels[0][from[0]];
      to[area] = levels[1][from[1]];
      to[2 * area] = levels[2][from[2]];
    }
  }
}

int64_t shorter_for(int64_t side) { return std::llround(static_cast<double>(side) * 256 / kUsualSide); }

}  // namespace

PictureOptions::PictureOptions(const DataOptions& options)
    : side(options.image_size > 0 ? options.image_size : kUsualSide),
      shorter(shorter_for(side)),
      augment(options.augment.value_or(true)),
      crop_scale(options.crop_scale),
      flip(options.flip),
      levels(make_channel_levels(options)),
      shrinks(options.cache_bytes > 0),
      cache_bytes(options.cache_bytes),
      skip_bad(options.skip_bad_samples),
      seed(options.seed) {
  if (options.image_size < 0 || side > kLargestSide)
    throw UsageError("--image-size is {}: it must be from 1 to {}, or 0 for {}", options.image_size, kLargestSide,
                     kUsualSide);
  if (!(crop_scale > 0 && crop_scale <= 1))
    throw UsageError("--crop-scale is {}: it must be above 0 and at most 1", crop_scale);
}

PictureSamples::PictureSamples(std::string name, std::shared_ptr<const PictureSource> source,
                               std::vector<std::string> class_names, const PictureOptions& options)
    : name_(std::move(name)), source_(std::move(source)), class_names_(std::move(class_names)), options_(options) {
  if (options_.shrinks) kept_.resize(static_cast<size_t>(source_->size()));
}

SampleTraits PictureSamples::traits() const {
  SampleTraits traits{SampleKind::images, {3, options_.side, options_.side}, static_cast<int64_t>(class_names_.size())};
  traits.class_names = class_names_;
  return traits;
}

std::shared_ptr<const RgbPixels> PictureSamples::shrunk(int64_t index) const {
  const auto place = static_cast<size_t>(index);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_[place]) return kept_[place];
  }
  const std::string content = source_->read(index);
  PictureFile file(content, source_->name(index));
  auto pixels = std::make_shared<const RgbPixels>(shrink(file, options_.shorter));
  const auto bytes = static_cast<int64_t>(pixels->bytes.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!kept_[place] && kept_bytes_ + bytes <= options_.cache_bytes) {
    kept_[place] = pixels;
    kept_bytes_ += bytes;
  }
  return pixels;
}

RgbPixels PictureSamples::view(Pick pick, bool& is_mirrored) const {
  PortableRandom random(options_.seed, static_cast<uint64_t>(pick.epoch), static_cast<uint64_t>(pick.index));
  const auto show_part = [&](auto& picture, int64_t width, int64_t height) {
    if (!options_.augment)
      return show(picture, centre_view(width, height, options_.shorter, options_.side), options_.side, options_.side);
    const PictureView part = random_view(width, height, options_.crop_scale, random);
    is_mirrored = options_.flip && random.below(2) == 1;
    return show(picture, part, options_.side, options_.side);
  };
  if (options_.shrinks) {
    const std::shared_ptr<const RgbPixels> picture = shrunk(pick.index);
    return show_part(*picture, picture->width, picture->height);
  }
  const std::string content = source_->read(pick.index);
  PictureFile file(content, source_->name(pick.index));
  return show_part(file, file.width(), file.height());
}

void PictureSamples::load(Pick pick, int64_t row, Batch& batch) const {
  for (int replaced = 0;; ++replaced) {
    try {
      bool is_mirrored = false;
      const RgbPixels pixels = view(pick, is_mirrored);
      write_planes(pixels, is_mirrored, options_.levels,
                   batch.inputs[0].data_ptr<float>() + row * 3 * options_.side * options_.side);
      batch.target.data_ptr<int64_t>()[row] = source_->label(pick.index);
      return;
    } catch (const Error& error) {
      if (!options_.skip_bad) throw Error("{} --skip-bad-samples leaves such files out.", error.what());
      if (replaced == kMostReplacements || replaced + 1 == size())
        throw Error("{} Nor could the {} before it be: look at these files.", error.what(), replaced);
      const std::lock_guard<std::mutex> lock(mutex_);
      bad_.insert(pick.index);
    }
    pick.index = (pick.index + 1) % size();  // the same on every rank, whatever was read before
  }
}

void PictureSamples::encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const {
  PictureFile file(content, input);
  const PictureView middle = centre_view(file.width(), file.height(), options_.shorter, options_.side);
  write_planes(show(file, middle, options_.side, options_.side), false, options_.levels,
               batch.inputs[0].data_ptr<float>() + row * 3 * options_.side * options_.side);
  batch.target.data_ptr<int64_t>()[row] = 0;
}

std::vector<std::string> PictureSamples::bad_samples() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  names.reserve(bad_.size());
  for (const int64_t index : bad_) names.push_back(source_->name(index));
  return names;
}

TrainTest open_pictures(const DataOptions& options, std::shared_ptr<const PictureSource> train,
                        std::shared_ptr<const PictureSource> test, const std::vector<std::string>& class_names) {
  PictureOptions for_training(options);
  PictureOptions for_test(options);
  for_test.augment = false;
  // One budget for both, by their sizes.
  const double share = static_cast<double>(test->size()) / static_cast<double>(train->size() + test->size());
  for_test.cache_bytes = static_cast<int64_t>(share * static_cast<double>(options.cache_bytes));
  for_training.cache_bytes = options.cache_bytes - for_test.cache_bytes;
  return {std::make_shared<PictureSamples>(options.name, std::move(train), class_names, for_training),
          std::make_shared<PictureSamples>(options.name, std::move(test), class_names, for_test)};
}

}  // namespace tutti
