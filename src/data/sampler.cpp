#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/random.h"
#include "tutti/error.h"

namespace tutti {

Sampler::Sampler(int64_t data_size, uint64_t seed, int64_t batch, int ranks, bool shuffle)
    : data_size_(data_size), seed_(seed), batch_(batch), ranks_(ranks), shuffle_(shuffle) {
  if (data_size < 0 || batch < 1 || ranks < 1) {
    throw UsageError("cannot share out {} samples in batches of {} over {} ranks; batch and ranks must be at least 1",
                     data_size, batch, ranks);
  }
  begin_epoch(0);
}

void Sampler::begin_epoch(int64_t epoch, int64_t first_sample) {
  if (first_sample < 0 || first_sample > data_size_) {
    throw Error("cannot start an epoch at sample {} of {}; does the checkpoint belong to other data?", first_sample,
                data_size_);
  }
  first_sample_ = first_sample;
  order_.resize(static_cast<size_t>(data_size_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!shuffle_) return;
  // Fisher-Yates by hand: std::shuffle gives another order with another standard library.
  PortableRandom random(seed_, static_cast<uint64_t>(epoch), 0);
  for (uint64_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[random.below(left)]);
}

int64_t Sampler::steps() const {
  const int64_t per_step = batch_ * ranks_;
  return (data_size_ - first_sample_ + per_step - 1) / per_step;
}

int64_t Sampler::global_size(int64_t step) const {
  const int64_t per_step = batch_ * ranks_;
  return std::clamp(data_size_ - first_sample_ - step * per_step, int64_t{0}, per_step);
}

std::vector<int64_t> Sampler::indices(int64_t step, int rank) const {
  // The first `longer` ranks take one sample more than the others.
  const int64_t share = global_size(step) / ranks_;
  const int64_t longer = global_size(step) % ranks_;
  const int64_t begin = first_sample_ + step * batch_ * ranks_ + rank * share + std::min<int64_t>(rank, longer);
  const int64_t count = share + (rank < longer ? 1 : 0);
  if (count == 0) return {};
  return {order_.begin() + begin, order_.begin() + begin + count};
}

}  // namespace tutti
