#include "data/packed_samples.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "data/loader.h"

namespace tutti {
namespace {

constexpr int64_t kBatch = 256;

/// Numbers up to 256 different floats, by their bits, in the order in which they come.
class FloatCodes {
 public:
  /// The float's number, or -1 when there are too many.
  int code(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (uint32_t place = (bits * 0x9e3779b1U) >> kShift;; place = (place + 1) % kPlaces) {
      Entry& entry = places_[place];
      if (entry.code >= 0 && entry.bits == bits) return entry.code;
      if (entry.code >= 0) continue;
      if (table_.size() == 256) return -1;
      entry = {bits, static_cast<int>(table_.size())};
      table_.push_back(value);
      return entry.code;
    }
  }
  const std::vector<float>& table() const { return table_; }

 private:
  static constexpr int kShift = 21;
  static constexpr uint32_t kPlaces = uint32_t{1} << (32 - kShift);  // eight times as many as there can be entries
  struct Entry {
    uint32_t bits = 0;
    int code = -1;
  };
  std::array<Entry, kPlaces> places_{};
  std::vector<float> table_;
};

/// Packs a tensor of one batch after the other.
class Packer {
 public:
  Packer(const torch::Tensor& like, int64_t samples) : type_(like.scalar_type()) {
    shape_ = like.sizes().vec();
    shape_[0] = samples;
    values_ = torch::empty(shape_, type_ == torch::kFloat ? torch::kUInt8 : torch::kInt);
  }

  /// False when the values have no packed form.
  bool add(const torch::Tensor& rows) {
    const int64_t count = rows.numel();
    if (type_ == torch::kLong) return add_integers(rows.data_ptr<int64_t>(), count);
    if (type_ != torch::kFloat) return false;
    const float* const from = rows.data_ptr<float>();
    if (values_.scalar_type() == torch::kUInt8 && !add_codes(from, count)) decode();
    if (values_.scalar_type() == torch::kFloat) std::copy_n(from, count, values_.data_ptr<float>() + done_);
    done_ += count;
    return true;
  }

  PackedColumn result() const {
    PackedColumn column{values_, {}};
    if (values_.scalar_type() == torch::kUInt8) column.table = codes_.table();
    return column;
  }
  int64_t bytes() const { return static_cast<int64_t>(values_.nbytes()); }

 private:
  bool add_integers(const int64_t* from, int64_t count) {
    int32_t* const to = values_.data_ptr<int32_t>() + done_;
    for (int64_t i = 0; i < count; ++i) {
      if (from[i] < std::numeric_limits<int32_t>::min() || from[i] > std::numeric_limits<int32_t>::max()) return false;
      to[i] = static_cast<int32_t>(from[i]);
    }
    done_ += count;
    return true;
  }
  bool add_codes(const float* from, int64_t count) {
    uint8_t* const to = values_.data_ptr<uint8_t>() + done_;
    for (int64_t i = 0; i < count; ++i) {
      const int code = codes_.code(from[i]);
      if (code < 0) return false;
      to[i] = static_cast<uint8_t>(code);
    }
    return true;
  }
  /// Too many different values: back to floats.
  void decode() {
    const torch::Tensor coded = values_;
    values_ = torch::empty(shape_, torch::kFloat);
    const uint8_t* const from = coded.data_ptr<uint8_t>();
    float* const to = values_.data_ptr<float>();
    for (int64_t i = 0; i < done_; ++i) to[i] = codes_.table()[from[i]];
  }

  torch::ScalarType type_;
  std::vector<int64_t> shape_;
  torch::Tensor values_;
  FloatCodes codes_;
  int64_t done_ = 0;  // elements
};

}  // namespace

int64_t PackedSamples::bytes() const {
  int64_t sum = 0;
  for (const PackedColumn& column : columns) sum += static_cast<int64_t>(column.values.nbytes());
  return sum;
}

std::optional<PackedSamples> pack_samples(const std::shared_ptr<const Dataset>& data, int64_t most_bytes, int workers) {
  if (data->varies() || data->size() == 0 || data->size() > std::numeric_limits<int32_t>::max()) return {};
  const auto tensors_of = [](const Batch& batch) {
    std::vector<torch::Tensor> tensors = batch.inputs;
    tensors.push_back(batch.target);
    return tensors;
  };
  const auto example = tensors_of(data->make_batch(1, false));
  int64_t elements = 0;
  for (const torch::Tensor& tensor : example) elements += tensor.numel();
  if (elements * data->size() > most_bytes) return {};  // a byte each, at the least
  std::vector<Packer> packers;
  packers.reserve(example.size());
  for (const torch::Tensor& tensor : example) packers.emplace_back(tensor, data->size());

  std::vector<std::vector<int64_t>> batches;
  for (int64_t first = 0; first < data->size(); first += kBatch) {
    batches.emplace_back();
    for (int64_t i = first; i < std::min(first + kBatch, data->size()); ++i) batches.back().push_back(i);
  }
  Loader loader(data, std::move(batches), {std::max(1, workers), /*prefetch=*/4, /*pinned=*/false, /*epoch=*/0});
  while (loader.has_next()) {
    const auto tensors = tensors_of(loader.next());
    int64_t bytes = 0;
    for (std::size_t i = 0; i < packers.size(); ++i) {
      if (!packers[i].add(tensors[i])) return {};
      bytes += packers[i].bytes();
    }
    if (bytes > most_bytes) return {};
  }
  PackedSamples packed;
  for (const Packer& packer : packers) packed.columns.push_back(packer.result());
  return packed;
}

}  // namespace tutti
