#include "comm/sum/sum.h"

#include <gtest/gtest.h>

#include "comm/numbers.h"

namespace tutti {
namespace {

using namespace test;

SumKernels::Sum kernel(const SumKernels& kernels, DataType type) {
  return type == DataType::f32    ? kernels.f32
         : type == DataType::bf16 ? kernels.bf16
         : type == DataType::f16  ? kernels.f16
                                  : kernels.i64;
}

TEST(SumKernels, AddInOrderAndWriteToAllTargetsInPlace) {
  for (const SumKernels& kernels : runnable_sum_kernels()) {
    for (const DataType type : kAllTypes) {
      for (const int sources : {1, 2, 3, 4, 5, 8}) {
        for (const std::size_t count : {0u, 1u, 7u, 8u, 31u, 1023u, 1024u, 1025u, 3000u}) {
          for (const bool one_target : {false, true}) {
            SCOPED_TRACE(testing::Message() << kernels.name << " " << name_of(type) << " " << sources << " sources, "
                                            << count << " elements, one target: " << one_target);
            std::vector<Words> arrays;
            for (int s = 0; s < sources; ++s)
              arrays.push_back(random_numbers(type, count, 10u + static_cast<unsigned>(s)));
            const Words expected = reference_sum(type, arrays, count);
            std::vector<void*> targets;
            std::vector<const void*> inputs;
            for (Words& array : arrays) {
              targets.push_back(array.data());
              inputs.push_back(array.data());
            }
            if (one_target) targets.erase(targets.begin() + 1, targets.end());
            kernel(kernels, type)(targets.data(), static_cast<int>(targets.size()), inputs.data(), sources, count);
            for (const void* target : targets) {
              EXPECT_EQ(std::memcmp(target, expected.data(), count * bytes_of(type)), 0);
            }
          }
        }
      }
    }
  }
}

uint16_t half_at(const Words& words, std::size_t i) {
  uint16_t half;
  std::memcpy(&half, reinterpret_cast<const unsigned char*>(words.data()) + 2 * i, 2);
  return half;
}

void set_half(Words& words, std::size_t i, uint16_t half) {
  std::memcpy(reinterpret_cast<unsigned char*>(words.data()) + 2 * i, &half, 2);
}

/// value + 0 for every 16-bit pattern: tests both conversions.
TEST(SumKernels, KeepEveryHalfAsItIsAndNanStaysNan) {
  for (const SumKernels& kernels : runnable_sum_kernels()) {
    for (const DataType type : {DataType::bf16, DataType::f16}) {
      std::vector<uint16_t> all(65536), negative_zeros(65536, 0x8000), sum(65536);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
      void* target = sum.data();
      const void* sources[] = {all.data(), negative_zeros.data()};
      kernel(kernels, type)(&target, 1, sources, 2, all.size());
      const int infinity = type == DataType::bf16 ? 0x7F80 : 0x7C00;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if ((all[i] & 0x7FFF) > infinity) {
          EXPECT_GT(sum[i] & 0x7FFF, infinity) << kernels.name << " " << name_of(type) << " " << i;
        } else {
          EXPECT_EQ(sum[i], all[i]) << kernels.name << " " << name_of(type);
        }
      }
    }
  }
}

/// Every pattern plus small and large numbers: ties, subnormals, overflow.
TEST(SumKernels, RoundHalvesOnceToNearestEven) {
  for (const SumKernels& kernels : runnable_sum_kernels()) {
    for (const DataType type : {DataType::bf16, DataType::f16}) {
      for (const uint16_t addend : {0x0001, 0x8001, 0x0400, 0x1400, 0x3C00, 0xBC01, 0x5800, 0x7BFF, 0xFBFF, 0x3F80}) {
        Words all(65536 / 4 + 1), other(65536 / 4 + 1);
        for (std::size_t i = 0; i < 65536; ++i) {
          set_half(all, i, static_cast<uint16_t>(i));
          set_half(other, i, addend);
        }
        const Words expected = reference_sum(type, {all, other}, 65536);
        void* target = all.data();
        const void* sources[] = {all.data(), other.data()};
        kernel(kernels, type)(&target, 1, sources, 2, 65536);
        const int infinity = type == DataType::bf16 ? 0x7F80 : 0x7C00;
        for (std::size_t i = 0; i < 65536; ++i) {
          const uint16_t got = half_at(all, i);
          const uint16_t want = half_at(expected, i);
          if ((want & 0x7FFF) > infinity) {
            ASSERT_GT(got & 0x7FFF, infinity);
          } else {
            ASSERT_EQ(got, want) << kernels.name << " " << name_of(type) << " " << i << " + " << addend;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti
