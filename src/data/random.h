#pragma once

#include <cstdint>

namespace tutti {

/// splitmix64's finalizer: every input bit changes about half of the output bits.
constexpr uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Random numbers that are the same on every machine and with every standard library: integer hashing of a key and a
/// counter, and floats made from them exactly.
class PortableRandom {
 public:
  explicit PortableRandom(uint64_t key) : key_(mix_bits(key)) {}
  PortableRandom(uint64_t key, uint64_t a, uint64_t b) : key_(mix_bits(mix_bits(mix_bits(key) ^ a) ^ b)) {}

  uint64_t bits() { return mix_bits(key_ + 0x9e3779b97f4a7c15ULL * counter_++); }

  /// Uniform in [0, bound), without bias (Lemire, "Fast random integer generation in an interval", 2019).
  uint64_t below(uint64_t bound) {
    unsigned __int128 product = static_cast<unsigned __int128>(bits()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;
      while (static_cast<uint64_t>(product) < threshold) product = static_cast<unsigned __int128>(bits()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  /// Uniform in [0, 1), a multiple of 2^-24.
  float unit() { return static_cast<float>(bits() >> 40) * 0x1p-24F; }
  float between(float low, float high) { return low + (high - low) * unit(); }
  /// Bell-shaped around 0 with standard deviation `scale`, never beyond 3 of them: the sum of three uniforms.
  float bell(float scale) {
    const float first = unit();
    const float second = unit();
    return (first + second + unit() - 1.5F) * 2.0F * scale;
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace tutti
