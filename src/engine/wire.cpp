#include "engine/wire.h"

#include <torch/types.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"

namespace tutti {
namespace {

torch::Tensor tensor_on(const Span& span) {
  const auto type = span.type == DataType::f32   ? torch::kFloat32
                    : span.type == DataType::f16 ? torch::kFloat16
                                                 : torch::kBFloat16;
  return torch::from_blob(span.data, {static_cast<int64_t>(span.count)}, type);
}

}  // namespace

std::vector<std::string> wire_names() { return {"fp32", "fp16", "bf16"}; }

Wire::Wire(const std::string& name, int64_t longest, Communicator& comm) {
  if (name == "fp32") return;
  if (name != "fp16" && name != "bf16") throw UsageError(unknown_name("wire format", name, wire_names()));
  type_ = name == "fp16" ? DataType::f16 : DataType::bf16;
  buffer_ = comm.allocate(static_cast<std::size_t>(std::max<int64_t>(longest, 1)) * bytes_of(type_));
}

Span Wire::pack(Span gradients) {
  if (type_ == DataType::f32) return gradients;
  const Span message{buffer_, gradients.count, type_};
  tensor_on(message).copy_(tensor_on(gradients));
  return message;
}

void Wire::unpack(Span message, Span gradients) const {
  if (type_ != DataType::f32) tensor_on(gradients).copy_(tensor_on(message));
}

}  // namespace tutti
