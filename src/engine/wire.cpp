#include "engine/wire.h"

#include <algorithm>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {
namespace {

torch::Tensor tensor_on(const Span& span, bool on_device) {
  const auto type = span.type == DataType::f32   ? torch::kFloat32
                    : span.type == DataType::f16 ? torch::kFloat16
                                                 : torch::kBFloat16;
  const auto options = torch::TensorOptions(type).device(on_device ? torch::kCUDA : torch::kCPU);
  return torch::from_blob(span.data, {static_cast<int64_t>(span.count)}, options);
}

}  // namespace

Wire::Wire(const std::string& name, int64_t longest, double ratio, Communicator& comm)
    : on_device_(comm.device_stream() != nullptr), ranks_(comm.size()), rank_(comm.rank()) {
  const auto names = wire_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UsageError(unknown_name("wire format", name, names));
  if (name == "fp32") return;
  const auto elements = static_cast<std::size_t>(std::max<int64_t>(longest, 1));
  if (is_compressed(name)) {
    if (on_device_)
      throw UsageError("--wire {} is computed in host memory, and {} works in a GPU's: use --transport shm or mpi",
                       name, comm.name());
    compressor_ = make_compressor(name, ratio);
    left_out_ = torch::zeros({static_cast<int64_t>(elements)});
    buffer_ = comm.allocate(static_cast<std::size_t>(ranks_) * compressor_->words(elements) * sizeof(float));
  } else {
    type_ = name == "fp16" ? DataType::f16 : DataType::bf16;
    buffer_ = comm.allocate(elements * bytes_of(type_));
  }
}

template <typename Use>
void Wire::for_gradients(int64_t begin, std::size_t count, Use use) const {
  const int64_t end = begin + static_cast<int64_t>(count);
  for (const GradientSlot& slot : slots_) {
    const int64_t from = std::max(begin, slot.begin), to = std::min(end, slot.begin + slot.elements);
    if (from < to) use(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from));
  }
}

std::vector<float> Wire::without_padding(const float* elements, int64_t begin, std::size_t count) const {
  std::vector<float> gradients;
  gradients.reserve(count);
  for_gradients(begin, count, [&](std::size_t offset, std::size_t length) {
    gradients.insert(gradients.end(), elements + offset, elements + offset + length);
  });
  return gradients;
}

Span Wire::pack(Span gradients, int64_t begin) {
  if (compressor_) {
    float* const left_out = left_out_.data_ptr<float>() + begin;
    const float* const computed = static_cast<const float*>(gradients.data);
    for (std::size_t i = 0; i < gradients.count; ++i) left_out[i] += computed[i];
    std::vector<float> wanted = without_padding(left_out, begin, gradients.count);
    const std::size_t words = compressor_->words(wanted.size());
    float* const mine = static_cast<float*>(buffer_) + static_cast<std::size_t>(rank_) * words;
    compressor_->encode(wanted.data(), wanted.size(), mine);
    compressor_->add_decoded(mine, wanted.size(), -1, wanted.data());
    const float* rest = wanted.data();
    for_gradients(begin, gradients.count, [&](std::size_t offset, std::size_t length) {
      std::copy(rest, rest + length, left_out + offset);
      rest += length;
    });
    return {buffer_, static_cast<std::size_t>(ranks_) * words, DataType::f32};
  }
  if (type_ == DataType::f32) return gradients;
  // Each message has its own place, since several may be under way.
  const Span message{static_cast<std::byte*>(buffer_) + static_cast<std::size_t>(begin) * bytes_of(type_),
                     gradients.count, type_};
  tensor_on(message, on_device_).copy_(tensor_on(gradients, on_device_));
  return message;
}

std::unique_ptr<Work> Wire::carry(const Transfer& transfer, Span message, Communicator& comm) const {
  if (transfer.operation == Operation::reduce_scatter)
    return comm.reduce_scatter_sum(message, shares(transfer, comm.size()));
  if (transfer.operation == Operation::all_gather) return comm.all_gather(message, shares(transfer, comm.size()));
  if (!compressor_) return comm.all_reduce_sum(message);
  const auto ranks = static_cast<std::size_t>(ranks_);
  return comm.all_gather(message, std::vector<std::size_t>(ranks, message.count / ranks));
}

void Wire::unpack(Span message, Span gradients, int64_t begin) const {
  if (compressor_) {
    std::size_t count = 0;
    for_gradients(begin, gradients.count, [&](std::size_t, std::size_t length) { count += length; });
    std::vector<float> sum(count, 0);
    const std::size_t words = compressor_->words(count);
    for (int rank = 0; rank < ranks_; ++rank)
      compressor_->add_decoded(static_cast<const float*>(message.data) + static_cast<std::size_t>(rank) * words, count,
                               1, sum.data());
    const float* next = sum.data();
    for_gradients(begin, gradients.count, [&](std::size_t offset, std::size_t length) {
      std::copy(next, next + length, static_cast<float*>(gradients.data) + offset);
      next += length;
    });
  } else if (type_ != DataType::f32) {
    tensor_on(gradients, on_device_).copy_(tensor_on(message, on_device_));
  }
}

std::vector<torch::Tensor> Wire::state() const {
  if (!left_out_.defined()) return {};
  return {left_out_};
}

}  // namespace tutti
