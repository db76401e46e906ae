// Batches gathered on a GPU are those that a loader would have brought.

#include "train/resident_data.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/gpu.h"
#include "tutti/error.h"

namespace tutti {
namespace {

void expect_batches_of_a_loader(const std::shared_ptr<const Dataset>& data, bool channels_last) {
  const BatchPlace place{{torch::kCUDA, 0}, channels_last};
  const auto packed = pack_samples(data, 64 << 20, 1);
  ASSERT_TRUE(packed);
  const auto resident = make_resident_data(*packed, place);
  std::vector<int64_t> order(static_cast<std::size_t>(data->size()));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  for (int epoch = 0; epoch < 2; ++epoch) {
    resident->begin_epoch(order);
    int64_t done = 0;
    for (const int64_t size : {7, 7, 1}) {
      for (const int64_t first : {int64_t{0}, size}) {  // two micro-batches of a step
        Batch expected = data->make_batch(size, false);
        for (int64_t row = 0; row < size; ++row)
          data->load(order[static_cast<std::size_t>(done + first + row)], row, expected);
        expected = to_device(expected, place);
        const Batch actual = resident->gather(first, size);
        EXPECT_EQ(actual.size, size);
        ASSERT_EQ(actual.inputs.size(), expected.inputs.size());
        for (std::size_t i = 0; i < expected.inputs.size(); ++i) {
          EXPECT_TRUE(torch::equal(actual.inputs[i], expected.inputs[i]));
          EXPECT_EQ(actual.inputs[i].strides(), expected.inputs[i].strides());
        }
        EXPECT_TRUE(torch::equal(actual.target, expected.target));
      }
      resident->advance(2 * size);
      done += 2 * size;
    }
  }
}

TEST(ResidentData, GivesTheBatchesOfALoader) {
  TUTTI_NEEDS_GPU();
  DataOptions digits;
  digits.train_size = 60;
  expect_batches_of_a_loader(open_data(digits).train, false);
  expect_batches_of_a_loader(open_data(digits).train, true);
  for (const bool channels_last : {false, true}) {
    expect_batches_of_a_loader(make_synthetic({SampleKind::segmentation, {3, 9, 7}}, 50, 1, 1).train, channels_last);
    expect_batches_of_a_loader(make_synthetic({SampleKind::images, {3, 8, 8}, 5}, 50, 1, 1).train, channels_last);
  }
  expect_batches_of_a_loader(make_synthetic({SampleKind::sentences, {12}, 5, 50}, 50, 1, 1).train, false);
  expect_batches_of_a_loader(make_synthetic({SampleKind::masked_text, {16}, 2, 30522, 3}, 50, 1, 1).train, false);
}

}  // namespace
}  // namespace tutti
