#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace tutti {

std::vector<std::string> wire_names();

/// The format in which gradients travel: fp32 as they are, fp16 or bf16 for half the bytes. Sums are made in float32
/// and rounded once, so the 16-bit formats change the mathematics, but the same way under every strategy.
class Wire {
 public:
  /// `longest`: elements of the longest message. A collective, when the format is not fp32.
  Wire(const std::string& name, int64_t longest, Communicator& comm);

  /// The message to send for float32 gradients; they themselves for fp32.
  Span pack(Span gradients);
  /// Writes the message back; does nothing for fp32.
  void unpack(Span message, Span gradients) const;

 private:
  DataType type_ = DataType::f32;
  void* buffer_ = nullptr;  // the communicator's
};

}  // namespace tutti
