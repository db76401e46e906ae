#include "engine/wire.h"

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

std::vector<std::string> wire_names() { return {"fp32", "fp16", "bf16", "topk", "sign"}; }

bool is_compressed(const std::string& wire) { return wire == "topk" || wire == "sign"; }

Wire::Wire(const std::string& name, int64_t longest, double ratio, Communicator& comm)
    : ranks_(comm.size()), rank_(comm.rank()) {
  const auto names = wire_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UsageError(unknown_name("wire format", name, names));
  if (name == "fp32") return;
  const auto elements = static_cast<std::size_t>(std::max<int64_t>(longest, 1));
  if (is_compressed(name)) {
    compressor_ = make_compressor(name, ratio);
    left_out_ = torch::zeros({static_cast<int64_t>(elements)});
    buffer_ = comm.allocate(static_cast<std::size_t>(ranks_) * compressor_->words(elements) * sizeof(float));
  } else {
    type_ = name == "fp16" ? DataType::f16 : DataType::bf16;
    buffer_ = comm.allocate(elements * bytes_of(type_));
  }
}

Span Wire::pack(Span gradients, int64_t begin) {
  if (compressor_) {
    const std::size_t words = compressor_->words(gradients.count);
    float* const mine = static_cast<float*>(buffer_) + static_cast<std::size_t>(rank_) * words;
    float* const left_out = left_out_.data_ptr<float>() + begin;
    const float* const computed = static_cast<const float*>(gradients.data);
    for (std::size_t i = 0; i < gradients.count; ++i) left_out[i] += computed[i];
    compressor_->encode(left_out, gradients.count, mine);
    compressor_->add_decoded(mine, gradients.count, -1, left_out);
    return {buffer_, static_cast<std::size_t>(ranks_) * words, DataType::f32};
  }
  if (type_ == DataType::f32) return gradients;
  // Each message has its own place, since several may be under way.
  const Span message{static_cast<std::byte*>(buffer_) + static_cast<std::size_t>(begin) * bytes_of(type_),
                     gradients.count, type_};
  tensor_on(message).copy_(tensor_on(gradients));
  return message;
}

std::unique_ptr<Work> Wire::all_reduce(Span message, Communicator& comm) const {
  if (!compressor_) return comm.all_reduce_sum(message);
  const auto ranks = static_cast<std::size_t>(ranks_);
  return comm.all_gather(message, std::vector<std::size_t>(ranks, message.count / ranks));
}

void Wire::unpack(Span message, Span gradients) const {
  if (compressor_) {
    float* const sum = static_cast<float*>(gradients.data);
    std::fill(sum, sum + gradients.count, 0.0F);
    const std::size_t words = compressor_->words(gradients.count);
    for (int rank = 0; rank < ranks_; ++rank)
      compressor_->add_decoded(static_cast<const float*>(message.data) + static_cast<std::size_t>(rank) * words,
                               gradients.count, 1, sum);
  } else if (type_ != DataType::f32) {
    tensor_on(gradients).copy_(tensor_on(message));
  }
}

std::vector<torch::Tensor> Wire::state() const {
  if (!left_out_.defined()) return {};
  return {left_out_};
}

}  // namespace tutti
