// The optimizers' kernels against those for the CPU, over sizes and places that leave remainders.

#include <gtest/gtest.h>

#include "engine/optimizer.h"
#include "engine/step_graph.h"
#include "support/gpu.h"
#include "tutti/captured_step.h"

namespace tutti {
namespace {

std::vector<OptimizerOptions> all_kinds() {
  std::vector<OptimizerOptions> kinds(6);
  kinds[1].momentum = 0.9;
  kinds[2].momentum = 0.9;
  kinds[2].nesterov = true;
  kinds[2].weight_decay = 0.05;
  kinds[3].name = "adam";
  kinds[4].name = "adam";
  kinds[4].weight_decay = 0.05;
  kinds[5].name = "adamw";
  kinds[5].weight_decay = 0.1;
  kinds[1].rate_factor = kinds[5].rate_factor = 2.5;
  return kinds;
}

double relative_difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  return ((actual.cpu() - expected).abs().max() / expected.abs().max().clamp_min(1e-20)).item<double>();
}

TEST(OptimizerKernels, EqualTheCpuOverOddSizesAndPlaces) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(5);
  for (const OptimizerOptions& options : all_kinds())
    for (const int64_t count : {0, 1, 2, 3, 4, 7, 8, 31, 1021, 4096, 65539, 1048583})
      for (const int64_t begin : {0, 1, 3, 4}) {
        const int64_t length = begin + count + 5;
        const torch::Tensor start = torch::randn({length});
        const torch::Tensor there = start.clone(), here = start.cuda();
        const auto on_cpu = make_optimizer(options, there), on_gpu = make_optimizer(options, here);
        for (int64_t step = 1; step <= 4; ++step) {
          const torch::Tensor gradient = torch::randn({length}), scale = torch::full({}, 0.25 * step);
          const double rate = 0.01 * static_cast<double>(step);
          on_cpu->update({there, gradient, begin, begin + count, step}, rate, step > 1 ? scale : torch::Tensor());
          on_gpu->update({here, gradient.cuda(), begin, begin + count, step}, rate,
                         step > 1 ? scale.cuda() : torch::Tensor());
        }
        EXPECT_LT(relative_difference(here, there), 2e-6) << options.name << " " << count << " from " << begin;
        for (std::size_t i = 0; i < on_cpu->state().size(); ++i)
          EXPECT_LT(relative_difference(on_gpu->state()[i], on_cpu->state()[i]), 2e-6) << options.name << " " << i;
        // Nothing outside of the slice has changed.
        EXPECT_TRUE(torch::equal(here.narrow(0, 0, begin).cpu(), start.narrow(0, 0, begin)));
        EXPECT_TRUE(torch::equal(here.narrow(0, begin + count, 5).cpu(), start.narrow(0, begin + count, 5)));
      }
}

TEST(OptimizerKernels, DoNotDependOnHowTheSpaceIsSliced) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(6);
  constexpr int64_t kLength = 10007;
  for (const OptimizerOptions& options : all_kinds()) {
    const torch::Tensor start = torch::randn({kLength}, torch::kCUDA);
    const torch::Tensor whole = start.clone(), parts = start.clone();
    const auto first = make_optimizer(options, whole), second = make_optimizer(options, parts);
    for (int64_t step = 1; step <= 3; ++step) {
      const torch::Tensor gradient = torch::randn({kLength}, torch::kCUDA);
      first->update({whole, gradient, 0, kLength, step}, 0.01, {});
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 7}, {7, 640}, {640, kLength}})
        second->update({parts, gradient, begin, end, step}, 0.01, {});
    }
    EXPECT_TRUE(torch::equal(whole, parts)) << options.name;
  }
}

TEST(OptimizerKernels, RecordedTakeTheLearningRateAndTheStepOfTheDay) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  torch::manual_seed(7);
  constexpr int64_t kLength = 1021;
  for (const OptimizerOptions& options : all_kinds()) {
    const torch::Tensor start = torch::randn({kLength}, torch::kCUDA);
    const torch::Tensor eager = start.clone(), recorded = start.clone();
    const torch::Tensor gradient = torch::zeros({kLength}, torch::kCUDA), scale = torch::ones({}, torch::kCUDA);
    const auto first = make_optimizer(options, eager), second = make_optimizer(options, recorded);
    // The second half has been there for three steps less.
    const auto update = [&](FlatOptimizer& optimizer, const torch::Tensor& values, int64_t step, double rate) {
      optimizer.update({values, gradient, 0, 500, step}, rate, scale);
      optimizer.update({values, gradient, 500, kLength, step - 3}, rate, scale);
    };
    std::unique_ptr<StepGraph> graph;
    for (int64_t step = 4; step <= 12; ++step) {
      gradient.copy_(torch::randn({kLength}, torch::kCUDA));
      scale.fill_(1.0 / static_cast<double>(step));
      const double rate = 0.01 / static_cast<double>(step);
      update(*first, eager, step, rate);
      if (step < 7) {
        update(*second, recorded, step, rate);
        continue;
      }
      second->prepare(rate, step);
      if (!graph) graph = record_graph([&] { update(*second, recorded, step, rate); });
      graph->replay();
    }
    EXPECT_TRUE(torch::equal(eager, recorded)) << options.name;
    for (std::size_t i = 0; i < first->state().size(); ++i)
      EXPECT_TRUE(torch::equal(first->state()[i], second->state()[i])) << options.name;
  }
}

}  // namespace
}  // namespace tutti
