#include "engine/compression.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tutti/error.h"

namespace tutti {
namespace {

uint32_t bits_of(float word) {
  uint32_t bits = 0;
  std::memcpy(&bits, &word, sizeof bits);
  return bits;
}

float word_of(uint32_t bits) {
  float word = 0;
  std::memcpy(&word, &bits, sizeof word);
  return word;
}

/// The message: k places, then the k values there.
class TopK : public Compressor {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::size_t words(std::size_t count) const override { return 2 * kept(count); }

  void encode(const float* gradients, std::size_t count, float* message) const override {
    const std::size_t k = kept(count);
    std::vector<float> magnitudes(count);
    for (std::size_t i = 0; i < count; ++i) magnitudes[i] = std::fabs(gradients[i]);
    const auto kth = magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
    const float least = *kth;
    // All above the least one, then as many equal to it as there is room for, the first ones first.
    auto room_for_equal = k - static_cast<std::size_t>(std::count_if(
                                  magnitudes.begin(), kth, [&](float magnitude) { return magnitude > least; }));
    std::size_t used = 0;
    for (std::size_t i = 0; i < count && used < k; ++i) {
      const float magnitude = std::fabs(gradients[i]);
      if (!(magnitude > least) && !(magnitude == least && room_for_equal > 0)) continue;
      if (magnitude == least) --room_for_equal;
      message[used] = word_of(static_cast<uint32_t>(i));
      message[k + used++] = gradients[i];
    }
    for (; used < k; ++used) {  // gradients that are not numbers leave room
      message[used] = word_of(0);
      message[k + used] = 0;
    }
  }

  void add_decoded(const float* message, std::size_t count, float factor, float* sum) const override {
    const std::size_t k = kept(count);
    for (std::size_t i = 0; i < k; ++i) sum[bits_of(message[i])] += factor * message[k + i];
  }

 private:
  std::size_t kept(std::size_t count) const {
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(count))), 1, count);
  }

  double ratio_;
};

/// The message: the mean magnitude, then a bit per gradient, 1 where it is negative.
class Sign : public Compressor {
 public:
  std::size_t words(std::size_t count) const override { return 1 + (count + 31) / 32; }

  void encode(const float* gradients, std::size_t count, float* message) const override {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::fabs(static_cast<double>(gradients[i]));
    message[0] = static_cast<float>(sum / static_cast<double>(count));
    for (std::size_t word = 0; word * 32 < count; ++word) {
      uint32_t bits = 0;
      const std::size_t length = std::min<std::size_t>(32, count - word * 32);
      for (std::size_t i = 0; i < length; ++i)
        bits |= static_cast<uint32_t>(std::signbit(gradients[word * 32 + i]) ? 1 : 0) << i;
      message[1 + word] = word_of(bits);
    }
  }

  void add_decoded(const float* message, std::size_t count, float factor, float* sum) const override {
    const float magnitude = factor * message[0];
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_negative = ((bits_of(message[1 + i / 32]) >> (i % 32)) & 1U) != 0;
      sum[i] += is_negative ? -magnitude : magnitude;
    }
  }
};

}  // namespace

std::unique_ptr<Compressor> make_compressor(const std::string& name, double ratio) {
  if (name == "topk") return std::make_unique<TopK>(ratio);
  if (name == "sign") return std::make_unique<Sign>();
  throw Error("'{}' compresses nothing", name);
}

}  // namespace tutti
