#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/compression.h"
#include "plan/wire_format.h"
#include "tutti/communicator.h"
#include "tutti/plan.h"

namespace tutti {

/// The format in which gradients travel: fp32 as they are, fp16 or bf16 for half the bytes, topk or sign for a small
/// part of them. Of the 16-bit formats, sums are made in float32 and rounded once, so they change the mathematics, but
/// the same way under every strategy. topk and sign choose by message, so strategies differ under them.
class Wire {
 public:
  /// `longest`: elements of the longest message, and of the flat space. `ratio`: of the gradients that topk keeps. A
  /// collective, when the format is not fp32.
  Wire(const std::string& name, int64_t longest, double ratio, Communicator& comm);

  DataType type() const { return type_; }

  /// Where gradients lie from now on: a compressor must not see the padding between them.
  void lay_out(const std::vector<GradientSlot>& slots) { slots_ = slots; }

  /// The message to send for the float32 gradients that begin at element `begin`; they themselves for fp32.
  Span pack(Span gradients, int64_t begin);
  /// Starts what a transfer makes of its message; not for push_pull.
  std::unique_ptr<Work> carry(const Transfer& transfer, Span message, Communicator& comm) const;
  /// Writes the sum to the gradients that begin at element `begin`; does nothing for fp32.
  void unpack(Span message, Span gradients, int64_t begin) const;

  /// What was left out so far: laid out like gradients.
  std::vector<torch::Tensor> state() const;

 private:
  /// Calls `use(offset, count)` for each gradient, or part of one, among `count` elements from `begin` on.
  template <typename Use>
  void for_gradients(int64_t begin, std::size_t count, Use use) const;
  /// Just the gradients among those elements, one after the other.
  std::vector<float> without_padding(const float* elements, int64_t begin, std::size_t count) const;

  DataType type_ = DataType::f32;
  void* buffer_ = nullptr;  // the communicator's
  bool on_device_ = false;  // messages lie in a GPU's memory, as the communicator wants them
  std::unique_ptr<Compressor> compressor_;
  int ranks_ = 1, rank_ = 0;
  std::vector<GradientSlot> slots_;
  torch::Tensor left_out_;  // by a compressor
};

}  // namespace tutti
