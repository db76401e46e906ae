#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tutti {

/// Gradients in far fewer bytes, and not the same gradients any more: what a rank leaves out of one step's message it
/// adds to the next one (error feedback: Stich et al., NeurIPS 2018; Karimireddy et al., ICML 2019).
class Compressor {
 public:
  virtual ~Compressor() = default;
  /// Length of the message for `count` gradients, in 4-byte words. Never shrinks when count grows.
  virtual std::size_t words(std::size_t count) const = 0;
  virtual void encode(const float* gradients, std::size_t count, float* message) const = 0;
  /// Adds what a message says to `sum`, times `factor`.
  virtual void add_decoded(const float* message, std::size_t count, float factor, float* sum) const = 0;
};

/// "topk": the `ratio` of the gradients that are largest in magnitude, and where they are (Aji and Heafield, EMNLP
/// 2017). "sign": one bit each and their mean magnitude (Seide et al., Interspeech 2014; Bernstein et al., ICML 2018).
std::unique_ptr<Compressor> make_compressor(const std::string& name, double ratio);

}  // namespace tutti
