// What ranks tell each other between steps: whether to stop, whether rank 0 is still saving, whether they are still the
// same.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "support/rank_threads.h"
#include "train/failures.h"
#include "train/rank_meeting.h"
#include "train/rank_setup.h"
#include "train/same_weights.h"

namespace tutti {
namespace {

using Ranks = std::vector<int>;

TEST(RankMeeting, ComesAfterEverySlowTurnAndAfterTheSameTurnsOnAllRanks) {
  std::mutex mutex;
  std::vector<std::vector<int>> met(3);
  const auto errors = run_rank_threads(3, [&](Communicator& comm) {
    RankMeeting meeting(comm);
    for (int turn = 0; turn < 40; ++turn) {
      // Quick ones, then some longer than half a second.
      if (turn >= 37 && comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      if (!meeting.is_due()) continue;
      EXPECT_EQ(meeting.sum({comm.rank() == 2 ? 1 : 0}), std::vector<int64_t>{1});
      const std::lock_guard<std::mutex> lock(mutex);
      met[static_cast<std::size_t>(comm.rank())].push_back(turn);
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(met[0].front(), 0);
  EXPECT_LT(met[0].size(), 40U) << "quick turns are not all worth a meeting";
  EXPECT_EQ(met[1], met[0]);
  EXPECT_EQ(met[2], met[0]);
}

TEST(FirstRankAlone, TakesItsTimeWhileTheOthersHearOfIt) {
  std::atomic<bool> is_done{false};
  const auto errors = run_rank_threads(3, [&](Communicator& comm) {
    first_rank_alone(comm, [&] {
      EXPECT_EQ(comm.rank(), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1200));
      is_done = true;
    });
    EXPECT_TRUE(is_done);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(FirstRankAlone, IsTheOnlyOneThatSaysWhatWentWrong) {
  const auto errors =
      run_rank_threads(3, [&](Communicator& comm) { first_rank_alone(comm, [] { throw Error("the disk is full"); }); });
  EXPECT_NE(errors[0].find("the disk is full"), std::string::npos) << errors[0];
  for (const std::size_t rank : {1U, 2U}) EXPECT_NE(errors[rank].find("rank 0 could not save"), std::string::npos);
}

TEST(OddRanks, AreThoseThatDifferFromMost) {
  EXPECT_EQ(odd_ranks({7, 7, 7}), Ranks{});
  EXPECT_EQ(odd_ranks({7, 8, 7}), Ranks{1});
  EXPECT_EQ(odd_ranks({1, 7, 2, 7, 7}), (Ranks{0, 2}));
  EXPECT_EQ(odd_ranks({7, 8}), (Ranks{0, 1})) << "nobody knows which";
  EXPECT_EQ(odd_ranks({7, 8, 7, 8}), (Ranks{0, 1, 2, 3}));
}

void flip_bit(const torch::Tensor& tensor, int bit) {
  auto* const bytes = static_cast<unsigned char*>(tensor.data_ptr());
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1U << (bit % 8)));
}

TEST(SameWeights, AreNotAfterAnyBitHasFlipped) {
  const torch::nn::Linear model(3, 2);
  const int64_t before = weights_checksum(*model);
  EXPECT_EQ(weights_checksum(*model), before);
  for (int bit = 0; bit < 6 * 32; ++bit) {
    flip_bit(model->weight, bit);
    EXPECT_NE(weights_checksum(*model), before) << bit;
    flip_bit(model->weight, bit);
  }
  EXPECT_EQ(weights_checksum(*model), before);
}

TEST(SameWeights, NameTheOddRankThere) {
  const auto errors = run_rank_threads(3, [](Communicator& comm) {
    torch::nn::Linear model(3, 2);
    {
      const torch::NoGradGuard no_grad;
      for (torch::Tensor& tensor : model->parameters()) tensor.fill_(0.5);
    }
    require_same_weights(*model, comm, "after step 6", "");
    if (comm.rank() == 1) flip_bit(model->bias, 3);
    require_same_weights(*model, comm, "after step 7", "Go on from step 6.");
  });
  EXPECT_NE(errors[1].find("after step 7 rank 1 has other weights than the 2 others."), std::string::npos) << errors[1];
  EXPECT_NE(errors[1].find("Go on from step 6."), std::string::npos) << errors[1];
  for (const std::size_t rank : {0U, 2U}) EXPECT_NE(errors[rank], "");
}

TEST(FiniteWeights, AreLookedForByName) {
  const torch::nn::Linear model(3, 2);
  EXPECT_EQ(find_not_finite(*model), "");
  const torch::NoGradGuard no_grad;
  model->bias[1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(find_not_finite(*model), "bias");
}

}  // namespace
}  // namespace tutti
