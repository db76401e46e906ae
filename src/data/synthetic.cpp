// Samples of any kind, drawn at random: right in shape and range, without meaning. They cost nothing to load, so a run
// on them shows what training itself can do.
//
// A *pool* of distinct samples is made once, as one batch; sample i is a copy of row i % size of it.

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "data/random.h"
#include "data/sources.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kDefaultTrain = 12800;
constexpr int64_t kDefaultTest = 1280;
constexpr int64_t kLargestPool = 256;
constexpr int64_t kSmallestPool = 16;
constexpr int64_t kPoolBytes = 64 << 20;
constexpr float kRootOfThree = 1.7320508F;  // uniform numbers up to it have deviation 1
// Token numbers that text gives a meaning of its own: padding and unknown words.
constexpr int64_t kFirstWord = 2;

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t side : shape) product *= side;
  return product;
}

void check_traits(const SampleTraits& traits) {
  const bool is_text = traits.kind == SampleKind::sentences || traits.kind == SampleKind::masked_text;
  const bool is_table = traits.kind == SampleKind::table;
  const bool has_class = traits.kind == SampleKind::images || traits.kind == SampleKind::sentences || is_table;
  const bool is_whole = traits.shape.size() == (is_text || is_table ? 1 : 3) &&
                        std::all_of(traits.shape.begin(), traits.shape.end(), [](int64_t side) { return side > 0; });
  if (!is_whole || (has_class && traits.classes < 1) || (is_text && traits.vocabulary <= kFirstWord) ||
      (traits.kind == SampleKind::masked_text && (traits.masked < 1 || traits.masked >= traits.shape[0]))) {
    throw Error("cannot make synthetic samples of shape [{}], {} classes, {} tokens, {} masked",
                fmt::join(traits.shape, ", "), traits.classes, traits.vocabulary, traits.masked);
  }
}

class Synthetic : public Dataset {
 public:
  Synthetic(std::string name, SampleTraits traits, int64_t size, PortableRandom random)
      : name_(std::move(name)), traits_(std::move(traits)), size_(size) {
    const int64_t fitting = kPoolBytes / (elements(traits_.shape) * static_cast<int64_t>(sizeof(float)));
    pool_ = make_batch(std::min(size, std::clamp(fitting, kSmallestPool, kLargestPool)), false);
    for (int64_t row = 0; row < pool_.size; ++row) draw(row, random);
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }
  SampleTraits traits() const override { return traits_; }
  bool varies() const override { return false; }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    const int64_t from = pick.index % pool_.size;
    for (size_t i = 0; i < batch.inputs.size(); ++i) copy_row(pool_.inputs[i], from, batch.inputs[i], row);
    copy_row(pool_.target, from, batch.target, row);
  }

 private:
  static void copy_row(const torch::Tensor& from, int64_t from_row, torch::Tensor& to, int64_t to_row) {
    const auto bytes = static_cast<int64_t>(from.nbytes()) / from.size(0);
    std::copy_n(static_cast<const char*>(from.data_ptr()) + from_row * bytes, bytes,
                static_cast<char*>(to.data_ptr()) + to_row * bytes);
  }

  template <typename T>
  static T* row_of(torch::Tensor& tensor, int64_t row) {
    return tensor.data_ptr<T>() + row * (tensor.numel() / tensor.size(0));
  }

  void draw(int64_t row, PortableRandom& random) {
    const auto number = [&random](int64_t bound) {
      return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
    };
    switch (traits_.kind) {
      case SampleKind::images:
      case SampleKind::table:  // as if normalized: mean 0, deviation 1
        row_of<int64_t>(pool_.target, row)[0] = number(traits_.classes);
        std::generate_n(row_of<float>(pool_.inputs[0], row), elements(traits_.shape),
                        [&] { return random.between(-kRootOfThree, kRootOfThree); });
        break;
      case SampleKind::segmentation:
        std::generate_n(row_of<float>(pool_.inputs[0], row), elements(traits_.shape), [&] { return random.unit(); });
        std::generate_n(row_of<float>(pool_.target, row), traits_.shape[1] * traits_.shape[2],
                        [&] { return random.below(2) == 0 ? 0.F : 1.F; });
        break;
      case SampleKind::sentences:
        row_of<int64_t>(pool_.target, row)[0] = number(traits_.classes);
        draw_words(row, random);
        break;
      case SampleKind::masked_text:
        row_of<int64_t>(pool_.target, row)[0] = number(2);  // follows or not, whatever the traits say
        draw_words(row, random);
        draw_masks(row, random);
        break;
    }
  }

  /// Full length: the most work that such text can be.
  void draw_words(int64_t row, PortableRandom& random) {
    const auto words = static_cast<uint64_t>(traits_.vocabulary - kFirstWord);
    std::generate_n(row_of<int64_t>(pool_.inputs[0], row), traits_.shape[0],
                    [&] { return kFirstWord + static_cast<int64_t>(random.below(words)); });
  }

  void draw_masks(int64_t row, PortableRandom& random) {
    const int64_t length = traits_.shape[0];
    int64_t* const segments = row_of<int64_t>(pool_.inputs[1], row);
    std::fill_n(segments, length / 2, 0);
    std::fill(segments + length / 2, segments + length, 1);
    std::fill_n(row_of<int64_t>(pool_.inputs[2], row), length, 1);
    int64_t* const positions = row_of<int64_t>(pool_.inputs[3], row);
    int64_t* const words = row_of<int64_t>(pool_.inputs[4], row);
    for (int64_t i = 0; i < traits_.masked; ++i) {
      positions[i] = i * length / traits_.masked;  // spread evenly
      words[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(traits_.vocabulary)));
    }
  }

  const std::string name_;
  const SampleTraits traits_;
  const int64_t size_;
  Batch pool_;
};

struct Named {
  const char* name;
  SampleTraits (*traits)();
};

/// Counterparts of what published studies train on.
const std::array<Named, 5> kNamed{{
    {"synthetic-imagenet",
     [] {
       return SampleTraits{SampleKind::images, {3, 224, 224}, 1000, 0, 0};
     }},
    {"synthetic-mnist",
     [] {
       return SampleTraits{SampleKind::images, {1, 28, 28}, 10, 0, 0};
     }},
    {"synthetic-segmentation",
     [] {
       return SampleTraits{SampleKind::segmentation, {3, 256, 256}, 0, 0, 0};
     }},
    {"synthetic-sst5",
     [] {
       return SampleTraits{SampleKind::sentences, {256}, 5, 16000, 0};
     }},
    {"synthetic-text",
     [] {
       return SampleTraits{SampleKind::masked_text, {64}, 2, 30522, 10};
     }},
}};

}  // namespace

TrainTest make_synthetic(const SampleTraits& traits, int64_t train_size, int64_t test_size, uint64_t seed,
                         const std::string& name) {
  check_traits(traits);
  return {
      std::make_shared<Synthetic>(name, traits, train_size > 0 ? train_size : kDefaultTrain,
                                  PortableRandom(seed, 0, 0)),
      std::make_shared<Synthetic>(name, traits, test_size > 0 ? test_size : kDefaultTest, PortableRandom(seed, 1, 0))};
}

TrainTest open_synthetic(const DataOptions& options) {
  for (const Named& named : kNamed) {
    if (options.name == named.name) {
      return make_synthetic(named.traits(), options.train_size, options.test_size, options.seed, options.name);
    }
  }
  if (!options.traits) {
    std::vector<std::string> names;
    names.reserve(kNamed.size());
    for (const Named& named : kNamed) names.emplace_back(named.name);
    throw UsageError("--data synthetic makes what the model takes, which this one does not say; use {}",
                     fmt::join(names, ", "));
  }
  return make_synthetic(*options.traits, options.train_size, options.test_size, options.seed, options.name);
}

}  // namespace tutti
