#include "data/packed_samples.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

/// What a packed value stands for.
torch::Tensor unpacked(const PackedColumn& column) {
  if (column.table.empty())
    return column.values.scalar_type() == torch::kInt ? column.values.to(torch::kLong) : column.values;
  return torch::tensor(column.table).index_select(0, column.values.flatten().to(torch::kLong)).view_as(column.values);
}

void expect_same_samples(const Dataset& data, const PackedSamples& packed) {
  Batch batch = data.make_batch(data.size(), false);
  for (int64_t i = 0; i < data.size(); ++i) data.load(i, i, batch);
  ASSERT_EQ(packed.columns.size(), batch.inputs.size() + 1);
  for (std::size_t i = 0; i < batch.inputs.size(); ++i)
    EXPECT_TRUE(torch::equal(unpacked(packed.columns[i]), batch.inputs[i])) << i;
  EXPECT_TRUE(torch::equal(unpacked(packed.columns.back()), batch.target));
}

TEST(PackedSamples, KeepPixelsAsBytesBitForBit) {
  DataOptions options;
  options.train_size = 300;
  const auto data = open_data(options).train;
  const auto packed = pack_samples(data, 1 << 20, 2);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->columns[0].values.scalar_type(), torch::kUInt8);
  EXPECT_EQ(packed->columns[1].values.scalar_type(), torch::kInt);
  EXPECT_EQ(packed->bytes(), 300 * (28 * 28 + 4));
  expect_same_samples(*data, *packed);
}

TEST(PackedSamples, KeepFloatsThatAreTooManyForBytes) {
  const auto data = make_synthetic({SampleKind::segmentation, {3, 20, 20}}, 270, 1, 1).train;
  const auto packed = pack_samples(data, 8 << 20, 1);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->columns[0].values.scalar_type(), torch::kFloat);
  EXPECT_EQ(packed->columns[1].values.scalar_type(), torch::kUInt8) << "a mask has two values";
  expect_same_samples(*data, *packed);
}

TEST(PackedSamples, KeepTokensAsShortIntegers) {
  const auto data = make_synthetic({SampleKind::masked_text, {16}, 2, 30522, 3}, 50, 1, 1).train;
  const auto packed = pack_samples(data, 1 << 20, 1);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->bytes(), 50 * 4 * (3 * 16 + 2 * 3 + 1));
  expect_same_samples(*data, *packed);
}

TEST(PackedSamples, AreNotMadeOfWhatVariesOrIsTooLarge) {
  DataOptions options;
  options.train_size = 300;
  EXPECT_FALSE(pack_samples(open_data(options).train, 300 * 28 * 28 - 1, 1));
  // Small enough as bytes, but not as the floats that they turn out to be.
  const auto floats = make_synthetic({SampleKind::images, {3, 16, 16}, 5}, 300, 1, 1).train;
  EXPECT_FALSE(pack_samples(floats, 300 * 3 * 16 * 16 * 2, 1));
  class Varying : public Dataset {
   public:
    const std::string& name() const override { return name_; }
    int64_t size() const override { return 3; }
    SampleTraits traits() const override { return {SampleKind::images, {1, 2, 2}, 2, 0, 0}; }
    void load(Pick, int64_t, Batch&) const override {}

   private:
    std::string name_ = "varying";
  };
  EXPECT_FALSE(pack_samples(std::make_shared<Varying>(), 1 << 20, 1));
}

}  // namespace
}  // namespace tutti
