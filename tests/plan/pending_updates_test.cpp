#include "plan/pending_updates.h"

#include <gtest/gtest.h>

#include "plan/profiles.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

/// Slices of 32, 48 and 16 elements, each updated when it has been carried.
Plan crossing_plan() {
  Plan plan = empty_plan(profile_of({32, 48, 16}), "test", 2);
  plan.barrier = Barrier::next_forward;
  for (std::size_t slot = 0; slot < 3; ++slot) add_transfer(plan, slot, slot, StartsWhen::gradients_ready);
  return plan;
}

TEST(PendingUpdates, CoverASliceInPiecesAndSayWhenItIsThrough) {
  const Plan plan = crossing_plan();
  PendingUpdates pending(plan, 32);
  pending.add(1);
  const UpdatePiece a = pending.take_oldest(), b = pending.take_oldest();
  EXPECT_TRUE(pending.empty());
  EXPECT_EQ(a.begin, plan.transfers[1].begin);
  EXPECT_EQ(a.end, b.begin);
  EXPECT_EQ(b.end, plan.transfers[1].end);
  EXPECT_FALSE(pending.done(b));  // two threads may be through in any order
  EXPECT_TRUE(pending.done(a));
}

TEST(PendingUpdates, GiveWhatTheNextForwardNeedsFirst) {
  const Plan plan = crossing_plan();
  PendingUpdates pending(plan);
  for (const std::size_t transfer : {1, 0, 2}) pending.add(transfer);
  EXPECT_EQ(pending.take_most_urgent().transfer, 2U);  // the last gradients of backward are the first of forward
  EXPECT_EQ(pending.take_oldest().transfer, 1U);
  EXPECT_EQ(pending.take_most_urgent().transfer, 0U);
}

}  // namespace
}  // namespace tutti
