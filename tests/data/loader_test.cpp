#include "data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tutti/error.h"

namespace tutti {
namespace {

/// Sample i is the number i. Can fail at one sample, and counts what was loaded.
class Numbers : public Dataset {
 public:
  const std::string& name() const override { return name_; }
  int64_t size() const override { return 1000; }
  SampleTraits traits() const override { return {}; }
  Batch make_batch(int64_t count, bool) const override {
    return {{torch::empty({count})}, torch::empty({count}, torch::kLong), count};
  }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    const int64_t index = pick.index;
    epoch = pick.epoch;
    ++loaded;
    // Later samples come sooner, so that workers overtake each other.
    if (slow) std::this_thread::sleep_for(std::chrono::microseconds(1000 - index));
    if (index == bad_sample) throw Error("sample {} is bad", index);
    batch.inputs[0].data_ptr<float>()[row] = static_cast<float>(index);
    batch.target.data_ptr<int64_t>()[row] = index;
  }

  bool slow = false;
  int64_t bad_sample = -1;
  mutable std::atomic<int> loaded{0};
  mutable std::atomic<int64_t> epoch{0};

 private:
  const std::string name_ = "numbers";
};

std::vector<std::vector<int64_t>> batches_of(int64_t count, int64_t batch) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < count; ++i) {
    if (i % batch == 0) batches.emplace_back();
    batches.back().push_back(i);
  }
  return batches;
}

std::vector<int64_t> targets(const Batch& batch) {
  return {batch.target.data_ptr<int64_t>(), batch.target.data_ptr<int64_t>() + batch.size};
}

LoaderOptions options(int workers, int prefetch) {
  LoaderOptions result;
  result.workers = workers;
  result.prefetch = prefetch;
  return result;
}

TEST(Loader, DeliversTheSameBatchesInOrderWithAnyNumberOfWorkers) {
  const auto data = std::make_shared<Numbers>();
  data->slow = true;
  const auto expected = batches_of(50, 4);
  for (const int workers : {0, 1, 2, 5}) {
    Loader loader(data, expected, options(workers, 3));
    for (const auto& indices : expected) {
      ASSERT_TRUE(loader.has_next());
      EXPECT_EQ(targets(loader.next()), indices) << workers << " workers";
    }
    EXPECT_FALSE(loader.has_next());
    EXPECT_THROW(loader.next(), Error);
  }
}

TEST(Loader, DeliversEmptyBatches) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Numbers>(), {{1}, {}, {2}}, options(workers, 2));
    EXPECT_EQ(loader.next().size, 1);
    EXPECT_EQ(loader.next().size, 0);
    EXPECT_EQ(targets(loader.next()), std::vector<int64_t>{2});
  }
}

TEST(Loader, HasNothingForNoBatches) {
  EXPECT_FALSE(Loader(std::make_shared<Numbers>(), {}, options(2, 2)).has_next());
}

TEST(Loader, ThrowsAnErrorInItsBatchsTurnAndGoesOn) {
  const auto data = std::make_shared<Numbers>();
  data->bad_sample = 5;
  for (const int workers : {0, 1, 3}) {
    Loader loader(data, batches_of(16, 4), options(workers, 4));
    EXPECT_EQ(targets(loader.next()), (std::vector<int64_t>{0, 1, 2, 3}));
    try {
      loader.next();
      FAIL() << "no error with " << workers << " workers";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "sample 5 is bad");
    }
    EXPECT_EQ(targets(loader.next()), (std::vector<int64_t>{8, 9, 10, 11}));
  }
}

TEST(Loader, LoadsNoFurtherAheadThanItMay) {
  const auto data = std::make_shared<Numbers>();
  Loader loader(data, batches_of(100, 1), options(2, 3));
  while (data->loaded < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->loaded, 3);
  loader.next();
  while (data->loaded < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->loaded, 4);
}

TEST(Loader, GivesEveryWorkerABatchWhateverMayBeLoadedAhead) {
  const auto data = std::make_shared<Numbers>();
  Loader loader(data, batches_of(100, 1), options(6, 2));
  while (data->loaded < 6) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->loaded, 6);
}

TEST(Loader, PassesTheEpochOn) {
  for (const int workers : {0, 2}) {
    const auto data = std::make_shared<Numbers>();
    LoaderOptions loading = options(workers, 2);
    loading.epoch = 7;
    Loader loader(data, batches_of(4, 2), loading);
    loader.next();
    EXPECT_EQ(data->epoch, 7);
  }
}

TEST(Loader, StopsWhereverItsWorkersAre) {
  const auto data = std::make_shared<Numbers>();
  data->slow = true;
  for (int taken = 0; taken < 4; ++taken) {
    Loader loader(data, batches_of(1000, 100), options(3, 2));  // 100 ms a batch
    if (taken > 0) loader.next();
    if (taken > 1) std::this_thread::sleep_for(std::chrono::milliseconds(taken));
  }
  EXPECT_LT(data->loaded, 4 * 1000);
}

TEST(Loader, MeasuresHowLongItWaited) {
  const auto data = std::make_shared<Numbers>();
  data->slow = true;
  for (const int workers : {0, 1}) {
    Loader loader(data, batches_of(10, 10), options(workers, 1));  // just below 10 × 1 ms
    EXPECT_EQ(loader.waited_s(), 0);
    loader.next();
    EXPECT_GT(loader.waited_s(), 0.005);
  }
}

TEST(Loader, RefusesWhatCannotWork) {
  EXPECT_THROW(Loader(std::make_shared<Numbers>(), {}, options(-1, 1)), UsageError);
  EXPECT_THROW(Loader(std::make_shared<Numbers>(), {}, options(1, 0)), UsageError);
}

}  // namespace
}  // namespace tutti
