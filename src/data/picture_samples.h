#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/picture_view.h"

namespace tutti {

/// Pictures with a class each, as files have them. Calls from several threads at once are fine.
class PictureSource {
 public:
  virtual ~PictureSource() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;
  /// For messages: its path.
  virtual std::string name(int64_t index) const = 0;
  /// The bytes of the JPEG or PNG file.
  virtual std::string read(int64_t index) const = 0;
};

/// What becomes of a picture's pixels. Throws UsageError where options cannot be meant.
struct PictureOptions {
  explicit PictureOptions(const DataOptions& options);

  int64_t side;     // of what the network sees
  int64_t shorter;  // side of the whole picture that its middle is cut out of: 256 for 224
  bool augment;
  double crop_scale;
  bool flip;
  std::array<std::array<float, 256>, 3> levels;  // normalized, by channel and byte
  bool shrinks;                                  // first of all, to `shorter`
  int64_t cache_bytes;                           // then, for what comes of that
  bool skip_bad;
  uint64_t seed;
};

/// Pictures as a data set: a random part of each, mirrored half of the time, to train on, or its middle.
/// With a cache, all work starts from pictures that were shrunk to `shorter`, also where there is no room to keep them:
/// what a sample is does not depend on what is kept.
class PictureSamples : public Dataset {
 public:
  PictureSamples(std::string name, std::shared_ptr<const PictureSource> source, std::vector<std::string> class_names,
                 const PictureOptions& options);

  const std::string& name() const override { return name_; }
  int64_t size() const override { return source_->size(); }
  SampleTraits traits() const override;
  bool varies() const override { return options_.augment; }
  void load(Pick pick, int64_t row, Batch& batch) const override;
  /// As tests have it: its middle.
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override;
  std::vector<std::string> bad_samples() const override;

 private:
  RgbPixels view(Pick pick, bool& is_mirrored) const;
  std::shared_ptr<const RgbPixels> shrunk(int64_t index) const;

  const std::string name_;
  const std::shared_ptr<const PictureSource> source_;
  const std::vector<std::string> class_names_;
  const PictureOptions options_;

  mutable std::mutex mutex_;                                    // of what follows
  mutable std::vector<std::shared_ptr<const RgbPixels>> kept_;  // by index; empty without a cache
  mutable int64_t kept_bytes_ = 0;
  mutable std::set<int64_t> bad_;
};

/// Training and test pictures of these classes.
TrainTest open_pictures(const DataOptions& options, std::shared_ptr<const PictureSource> train,
                        std::shared_ptr<const PictureSource> test, const std::vector<std::string>& class_names);

}  // namespace tutti
