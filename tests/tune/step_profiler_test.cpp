#include "tune/step_profiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/rank_threads.h"

namespace tutti {
namespace {

constexpr int kWanted = 2;

/// Two parameters, and the events of a step as an engine tells them.
class Profiled {
 public:
  explicit Profiled(Communicator& comm)
      : first_(torch::ones({2}).requires_grad_()),
        second_(torch::ones({3}).requires_grad_()),
        space_({{"first", first_}, {"second", second_}}, comm),
        profiler(space_, kWanted) {}

  void step() {
    profiler.begin_forward();
    const torch::Tensor loss = (first_.sum() * second_.sum()).detach();
    pause();
    profiler.begin_backward();
    profiler.gradient_ready(1);
    pause();
    profiler.gradient_ready(0);
    profiler.end_backward();
    profiler.begin_update();
    pause();
    profiler.end_update();
    profiler.end_step(0, 0);
  }
  void record(bool succeeds) {
    profiler.begin_recording();
    step();
    profiler.end_recording(succeeds);
  }

 private:
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }
  torch::Tensor first_, second_;
  FlatSpace space_;

 public:
  StepProfiler profiler;
};

void with_profiled(const std::function<void(Profiled&)>& body) {
  const auto errors = run_rank_threads(1, [&](Communicator& comm) {
    Profiled profiled(comm);
    body(profiled);
  });
  EXPECT_EQ(errors[0], "");
}

TEST(StepProfiler, MeasuresEagerStepsWhereNoneIsRepeated) {
  with_profiled([](Profiled& profiled) {
    profiled.step();
    EXPECT_FALSE(profiled.profiler.is_complete(false));
    profiled.step();
    EXPECT_TRUE(profiled.profiler.is_complete(false));
    const Profile profile = profiled.profiler.result();
    EXPECT_GT(profile.forward_s, 0);
    EXPECT_GT(profile.backward_s, 0);
    EXPECT_GT(profile.update_s, 0);
    ASSERT_EQ(profile.gradients.size(), 2U);
    EXPECT_EQ(profile.gradients[0].name, "second");
    EXPECT_LT(profile.gradients[0].ready_s, profile.gradients[1].ready_s);
  });
}

TEST(StepProfiler, WaitsForRepetitionsWhereTheyAreToCome) {
  with_profiled([](Profiled& profiled) {
    StepProfiler& profiler = profiled.profiler;
    for (int i = 0; i < kWanted + 1; ++i) profiled.step();
    EXPECT_FALSE(profiler.is_complete(true));
    profiled.record(true);
    int repetitions = 0;
    for (; profiler.wants_repeated(); ++repetitions) {
      EXPECT_FALSE(profiler.is_complete(true)) << "after " << repetitions;
      profiler.step_repeated();
    }
    EXPECT_GT(repetitions, kWanted);
    EXPECT_TRUE(profiler.is_complete(true));
    EXPECT_EQ(profiler.result().gradients[0].name, "second");
  });
}

TEST(StepProfiler, TakesEagerStepsAfterAllWhereNoStepCouldBeRecorded) {
  with_profiled([](Profiled& profiled) {
    profiled.record(false);
    profiled.profiler.step_repeated();
    for (int i = 0; i < kWanted; ++i) profiled.step();
    EXPECT_TRUE(profiled.profiler.is_complete(false));
    EXPECT_FALSE(profiled.profiler.is_complete(true));
    for (int i = 0; i < 20; ++i) profiled.step();
    EXPECT_TRUE(profiled.profiler.is_complete(true)) << "every batch was smaller than the full one";
    EXPECT_GT(profiled.profiler.result().forward_s, 0);
  });
}

}  // namespace
}  // namespace tutti
