#include "model/example_batch.h"

namespace tutti {

Batch example_batch(const SampleTraits& traits, int64_t size) {
  Batch batch;
  batch.size = size;
  std::vector<int64_t> shape{size};
  shape.insert(shape.end(), traits.shape.begin(), traits.shape.end());
  const auto numbers = torch::TensorOptions(torch::kLong);
  switch (traits.kind) {
    case SampleKind::images:
      batch.inputs = {torch::randn(shape)};
      batch.target = torch::randint(traits.classes, {size}, numbers);
      break;
    case SampleKind::segmentation:
      batch.inputs = {torch::rand(shape)};
      batch.target = torch::rand({size, 1, shape[2], shape[3]}).gt(0.7).to(torch::kFloat);
      break;
    case SampleKind::sentences:
      batch.inputs = {torch::randint(1, traits.vocabulary, shape, numbers)};
      batch.target = torch::randint(traits.classes, {size}, numbers);
      break;
    case SampleKind::masked_text: {
      const torch::Tensor second_half = torch::arange(shape[1], numbers).ge(shape[1] / 2).to(torch::kLong);
      batch.inputs = {torch::randint(1, traits.vocabulary, shape, numbers), second_half.expand(shape).contiguous(),
                      torch::ones(shape, numbers),
                      // Distinct positions: the first of a random order.
                      torch::rand(shape).argsort(/*dim=*/int64_t{1}).slice(1, 0, traits.masked).contiguous(),
                      torch::randint(1, traits.vocabulary, {size, traits.masked}, numbers)};
      batch.target = torch::randint(2, {size}, numbers);
      break;
    }
    case SampleKind::table:
      batch.inputs = {torch::randn(shape)};
      batch.target = torch::randint(traits.classes, {size}, numbers);
      break;
  }
  return batch;
}

}  // namespace tutti
