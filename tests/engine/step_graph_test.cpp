#include "engine/step_graph.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "support/gpu.h"
#include "tutti/captured_step.h"
#include "tutti/error.h"

namespace tutti {
namespace {

TEST(StepGraph, RepeatsWhatWasRecordedOnTheSameMemory) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  const torch::Tensor input = torch::ones({1000}, torch::kCUDA), sum = torch::zeros({1000}, torch::kCUDA);
  const auto work = [&] { sum.add_(input * 2 + 1); };
  const auto graph = record_graph(work);
  EXPECT_EQ(sum.sum().item<double>(), 0) << "recording runs nothing";
  graph->replay();
  input.fill_(2);
  graph->replay();
  EXPECT_EQ(sum[17].item<double>(), 3 + 5);
}

TEST(StepGraph, DrawsTheSameRandomNumbersAsEagerWork) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  const torch::Tensor input = torch::ones({12345}, torch::kCUDA);
  torch::Tensor output = torch::empty_like(input);
  const auto work = [&] { output.copy_(torch::dropout(torch::dropout(input, 0.1, true), 0.5, true)); };
  for (int i = 0; i < 3; ++i) work();
  const auto graph = record_graph(work);
  for (const uint64_t seed : {1, 7, 123456789}) {
    torch::manual_seed(seed);
    work();
    const torch::Tensor expected = output.clone(), following = torch::rand({8}, torch::kCUDA);
    torch::manual_seed(seed);
    graph->replay();
    EXPECT_TRUE(torch::equal(output, expected)) << seed;
    EXPECT_TRUE(torch::equal(torch::rand({8}, torch::kCUDA), following)) << seed;
  }
}

TEST(StepGraph, RecordsBackwardToo) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  const torch::Tensor weight = torch::ones({64, 64}, torch::kCUDA).requires_grad_();
  const torch::Tensor input = torch::randn({32, 64}, torch::kCUDA), gradient = torch::zeros({64, 64}, torch::kCUDA);
  const auto work = [&] {
    weight.mutable_grad().reset();
    torch::relu(input.mm(weight)).sum().backward();
    gradient.copy_(weight.grad());
  };
  for (int i = 0; i < 3; ++i) work();
  const auto graph = record_graph(work);
  input.copy_(torch::randn({32, 64}, torch::kCUDA));
  work();
  const torch::Tensor expected = gradient.clone();
  gradient.zero_();
  graph->replay();
  EXPECT_TRUE(torch::equal(gradient, expected));
}

TEST(StepGraph, RefusesWhatAsksTheHostAndLeavesTheDeviceUsable) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  const torch::Tensor input = torch::ones({100}, torch::kCUDA);
  const auto asks = [&] { (void)torch::dropout(input, 0.5, true).sum().item<double>(); };
  EXPECT_THROW(record_graph(asks), Error);
  asks();
  const auto throws = [&] {
    (void)torch::dropout(input, 0.5, true);
    throw Error("not today");
  };
  EXPECT_THROW(record_graph(throws), Error);
  asks();
  EXPECT_EQ(input.sum().item<double>(), 100);
  // And recording works again.
  const torch::Tensor output = torch::zeros({100}, torch::kCUDA);
  const auto graph = record_graph([&] { output.add_(torch::dropout(input, 0.5, true)); });
  torch::manual_seed(3);
  graph->replay();
  torch::manual_seed(3);
  EXPECT_TRUE(torch::equal(output, torch::dropout(input, 0.5, true)));
}

TEST(StepGraph, NeedsAStreamOfItsOwn) {
  TUTTI_NEEDS_GPU();
  EXPECT_THROW(record_graph([] {}), Error);
}

}  // namespace
}  // namespace tutti
