#include <ATen/cuda/CUDAContext.h>

#include <algorithm>

#include "kernels/gather.h"
#include "train/resident_data.h"
#include "tutti/error.h"

namespace tutti {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error("CUDA: {} failed: {}", what, cudaGetErrorString(status));
}

class CudaResidentData : public ResidentData {
 public:
  CudaResidentData(const PackedSamples& samples, const BatchPlace& place)
      : place_(place), samples_(samples.columns.at(0).values.size(0)) {
    if (samples.columns.size() > static_cast<std::size_t>(GatherBatch::kMostColumns))
      throw Error("a batch of {} tensors cannot be gathered on a GPU", samples.columns.size());
    for (const PackedColumn& packed : samples.columns) {
      Column column{packed.values.to(place.device), {}};
      if (!packed.table.empty()) {
        std::vector<float> table = packed.table;
        table.resize(256);
        column.table = torch::tensor(table).to(place.device);
      }
      columns_.push_back(column);
    }
    order_ = torch::zeros({samples_}, torch::TensorOptions(torch::kInt).device(place.device));
    position_ = torch::zeros({}, torch::TensorOptions(torch::kLong).device(place.device));
  }

  void begin_epoch(const std::vector<int64_t>& order) override {
    if (static_cast<int64_t>(order.size()) > samples_)
      throw Error("an epoch of {} samples out of {}", order.size(), samples_);
    torch::Tensor numbers = torch::empty({static_cast<int64_t>(order.size())}, torch::kInt);
    std::copy(order.begin(), order.end(), numbers.data_ptr<int32_t>());
    order_.narrow(0, 0, numbers.numel()).copy_(numbers);
    position_.zero_();
  }

  Batch gather(int64_t first, int64_t size) override {
    Batch batch;
    batch.size = size;
    GatherBatch work;
    work.column_count = static_cast<int>(columns_.size());
    work.rows = size;
    work.order = order_.data_ptr<int32_t>();
    work.position = position_.data_ptr<int64_t>();
    work.first = first;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const torch::Tensor& values = columns_[i].values;
      std::vector<int64_t> shape = values.sizes().vec();
      shape[0] = size;
      const bool is_integer = values.scalar_type() == torch::kInt;
      const bool is_input = i + 1 < columns_.size();
      // One channel lies the same either way, and torch then takes it for the usual order.
      const bool channels_last = place_.channels_last && is_input && shape.size() == 4 && shape[1] > 1;
      const torch::Tensor to = torch::empty(shape, torch::TensorOptions(is_integer ? torch::kLong : torch::kFloat)
                                                       .device(place_.device)
                                                       .memory_format(channels_last ? torch::MemoryFormat::ChannelsLast
                                                                                    : torch::MemoryFormat::Contiguous));
      GatherColumn& column = work.columns[i];
      column.code = is_integer                              ? GatherColumn::Code::integer
                    : values.scalar_type() == torch::kUInt8 ? GatherColumn::Code::byte
                                                            : GatherColumn::Code::real;
      column.from = values.data_ptr();
      column.to = to.data_ptr();
      column.elements = values.numel() / samples_;
      column.channels = channels_last ? shape[1] : 1;
      if (columns_[i].table.defined()) column.table = columns_[i].table.data_ptr<float>();
      (is_input ? batch.inputs.emplace_back() : batch.target) = to;
    }
    check(gather_on_device(work, at::cuda::getCurrentCUDAStream()), "gathering a batch");
    return batch;
  }

  void advance(int64_t count) override {
    check(advance_on_device(position_.data_ptr<int64_t>(), count, at::cuda::getCurrentCUDAStream()),
          "moving on to the next batch");
  }

 private:
  struct Column {
    torch::Tensor values, table;
  };
  const BatchPlace place_;
  const int64_t samples_;
  std::vector<Column> columns_;
  torch::Tensor order_, position_;
};

}  // namespace

std::unique_ptr<ResidentData> make_resident_data(const PackedSamples& samples, const BatchPlace& place) {
  return std::make_unique<CudaResidentData>(samples, place);
}

}  // namespace tutti
