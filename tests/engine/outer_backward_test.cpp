// Backward passes and updates that the engine's caller runs itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "networks.h"
#include "support/rank_threads.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

std::vector<std::shared_ptr<OddNetwork>> equal_networks(int count) {
  std::vector<std::shared_ptr<OddNetwork>> models;
  for (int i = 0; i < count; ++i) {
    torch::manual_seed(5);
    models.push_back(std::make_shared<OddNetwork>());
  }
  return models;
}

torch::Tensor loss_of(OddNetwork& model, int rank, int step) {
  const Samples samples = make_samples((step * 2 + rank) * 4, 4);
  return model.loss(samples.x, samples.y, step % 2 == 1);
}

/// In place: PyTorch 2's zero_grad() forgets them, and its optimizers then pass over a parameter that a step does not
/// use.
void zero_gradients(const OddNetwork& model) {
  for (const torch::Tensor& parameter : model.parameters())
    if (parameter.grad().defined()) parameter.grad().zero_();
}

/// One process on the whole batch, in two parts.
void train_alone(OddNetwork& model, int steps) {
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 0; step < steps; ++step) {
    zero_gradients(model);
    for (int rank = 0; rank < 2; ++rank) (loss_of(model, rank, step) / 2).backward();
    optimizer.step();
  }
}

void expect_close(const OddNetwork& a, const OddNetwork& b) {
  const auto left = copies(a), right = copies(b);
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(torch::allclose(left[i], right[i], 1e-5, 1e-6)) << i;
}

TEST(OuterBackward, ACallerThatRunsBackwardAndUpdatesGetsSumsInTheGradients) {
  for (const char* const strategy : {"bsp", "wfbp", "bytescheduler", "zero1"}) {
    const auto models = equal_networks(3);
    train_alone(*models[2], 8);
    const auto errors = run_rank_threads(2, [&](Communicator& comm) {
      OddNetwork& model = *models[static_cast<std::size_t>(comm.rank())];
      TuneOptions options;
      options.strategy = strategy;
      options.updates_parameters = false;
      TunedEngine engine(model, comm, options);
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
      const auto end_step = [&] {
        engine.finish_step(0);
        engine.begin_step();
      };
      engine.begin_step();
      for (int step = 0; step < 8; ++step) {
        zero_gradients(model);
        if (step % 3 == 1) {  // an earlier pass that stays on its rank
          engine.expect_backward(0.5, /*is_last=*/false);
          (loss_of(model, comm.rank(), step) * 0.25).backward();
          engine.expect_backward(0.5, true, end_step);
          (loss_of(model, comm.rank(), step) * 0.75).backward();
        } else if (step % 3 == 2) {  // two steps of the engine, one of the optimizer
          engine.expect_backward(0.5, true, end_step);
          (loss_of(model, comm.rank(), step) * 0.25).backward();
          (loss_of(model, comm.rank(), step) * 0.75).backward();
        } else {
          engine.expect_backward(0.5, true, end_step);
          loss_of(model, comm.rank(), step).backward();
        }
        EXPECT_FALSE(model.unused.grad().defined());
        optimizer.step();
      }
      engine.settle();
      expect_close(model, *models[2]);  // its memory goes with the communicator
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "") << strategy;
  }
}

TEST(OuterBackward, ASecondLastPassIsRefusedWhereTheEngineUpdates) {
  const auto models = equal_networks(2);
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    OddNetwork& model = *models[static_cast<std::size_t>(comm.rank())];
    TunedEngine engine(model, comm, {});
    engine.begin_step();
    engine.expect_backward(0.5, true);
    loss_of(model, comm.rank(), 0).backward();
    EXPECT_TRUE(engine.engine().is_last_backward_begun());
    EXPECT_FALSE(model.first->weight.grad().defined());  // it is on its way
    loss_of(model, comm.rank(), 0).backward();
  });
  // Whichever comes first, the other learns of it.
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("a second backward pass before the optimizer's step"));
}

}  // namespace
}  // namespace tutti
