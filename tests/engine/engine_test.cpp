#include "tutti/tuned_engine.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "engine/issue_log.h"
#include "engine/optimizer.h"
#include "networks.h"
#include "support/rank_threads.h"
#include "support/test_servers.h"

namespace tutti {
namespace {

using Weights = std::vector<torch::Tensor>;

struct Case {
  TuneOptions engine;
  int ranks = 2;
  int steps = 8;
  int64_t batch = 4;  // per rank
  int64_t accumulate = 1;
  /// Whether a rank uses the parameter `sometimes` in a step.
  std::function<bool(int rank, int step)> uses_sometimes = [](int, int) { return false; };
};

Case adam_run() {
  Case run;
  run.engine.optimizer.name = "adam";
  return run;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

void train(OddNetwork& model, TunedEngine& engine, const Case& run, Communicator& comm) {
  const int64_t all = run.batch * run.accumulate * comm.size();
  for (int step = 0; step < run.steps; ++step) {
    engine.begin_step();
    for (int64_t micro = 0; micro < run.accumulate; ++micro) {
      const int64_t first = step * all + (comm.rank() * run.accumulate + micro) * run.batch;
      const Samples samples = make_samples(first, run.batch);
      engine.backward(model.loss(samples.x, samples.y, run.uses_sometimes(comm.rank(), step)),
                      static_cast<double>(run.batch) / static_cast<double>(all), micro + 1 == run.accumulate);
    }
    engine.finish_step(0.05);
  }
}

/// The weights of every rank after a run; rank 1 and up start from other weights, which the engine must replace.
std::vector<Weights> weights_of(const Case& run) {
  std::vector<Weights> weights(static_cast<std::size_t>(run.ranks));
  // Made one after the other: they share torch's random numbers.
  std::vector<std::shared_ptr<OddNetwork>> models;
  for (int rank = 0; rank < run.ranks; ++rank) {
    torch::manual_seed(static_cast<uint64_t>(rank) + 5);
    models.push_back(std::make_shared<OddNetwork>());
  }
  const TestServers servers(run.engine.strategy, run.ranks, 0);
  expect_no_errors(run_rank_threads(run.ranks, [&](Communicator& comm) {
    OddNetwork& model = *models[static_cast<std::size_t>(comm.rank())];
    TuneOptions options = run.engine;
    const auto connection = servers.connect(comm.rank());
    if (connection) options.servers = &connection->push_pull();
    TunedEngine engine(model, comm, options);
    train(model, engine, run, comm);
    engine.settle();
    weights[static_cast<std::size_t>(comm.rank())] = copies(model);
    if (connection) connection->stop();
  }));
  return weights;
}

/// What torch alone makes of the same samples in one process.
Weights reference_weights(
    const Case& run, const std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>& make) {
  torch::manual_seed(5);
  OddNetwork model;
  const auto optimizer = make(model.parameters());
  const int64_t all = run.batch * run.accumulate * run.ranks;
  for (int step = 0; step < run.steps; ++step) {
    for (auto& parameter : model.parameters())
      if (parameter.grad().defined()) parameter.mutable_grad().zero_();
    for (int rank = 0; rank < run.ranks; ++rank) {
      const int64_t each = run.batch * run.accumulate;
      const Samples samples = make_samples(step * all + rank * each, each);
      (model.loss(samples.x, samples.y, run.uses_sometimes(rank, step)) / run.ranks).backward();
    }
    if (run.engine.clip_norm > 0) torch::nn::utils::clip_grad_norm_(model.parameters(), run.engine.clip_norm);
    optimizer->step();
  }
  return copies(model);
}

Weights adam_reference(const Case& run) {
  return reference_weights(run, [](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.05));
  });
}

void expect_equal(const Weights& a, const Weights& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << what << ", parameter " << i;
}

void expect_near(const Weights& a, const Weights& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), 2e-5) << "parameter " << i << "\n" << a[i] << "\n" << b[i];
}

TEST(Engine, EndsWithTheSameBitsOnEveryRankUnderEveryStrategy) {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* optimizer : {"sgd", "adam"})
      for (const double clip : {0.0, 0.05}) {
        Case run;
        run.ranks = ranks;
        run.engine.optimizer.name = optimizer;
        run.engine.optimizer.momentum = 0.9;
        run.engine.clip_norm = clip;
        run.engine.strategy_options.first_bucket_bytes = 100;
        run.engine.strategy_options.bucket_bytes = 200;
        run.uses_sometimes = [](int, int step) { return step % 2 == 1; };
        run.engine.strategy = "bsp";
        const Weights expected = weights_of(run)[0];
        for (const std::string& strategy : strategy_names()) {
          run.engine.strategy = strategy;
          for (const Weights& weights : weights_of(run)) expect_equal(weights, expected, strategy);
        }
      }
}

TEST(Engine, MatchesOneProcessOnTheWholeBatch) {
  Case run = adam_run();
  run.ranks = 3;
  expect_near(weights_of(run)[0], adam_reference(run));
}

TEST(Engine, AccumulatedMicroBatchesCountAsOneBatch) {
  Case run = adam_run();
  run.accumulate = 3;
  expect_near(weights_of(run)[0], adam_reference(run));
}

TEST(Engine, ClipsByTheGlobalNormAsTorchDoes) {
  Case run;
  run.engine.clip_norm = 0.02;
  expect_near(weights_of(run)[0], reference_weights(run, [](std::vector<torch::Tensor> parameters) {
                return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05));
              }));
}

TEST(Engine, GivesTheNormOfTheWholeGradientsWhereARankHasThem) {
  const auto norm_under = [](const char* strategy, double clip_norm) {
    std::optional<double> norm = -1;
    expect_no_errors(run_rank_threads(2, [&](Communicator& comm) {
      torch::nn::Linear model(torch::nn::LinearOptions(2, 1).bias(false));
      TuneOptions options;
      options.strategy = strategy;
      options.clip_norm = clip_norm;
      TunedEngine engine(*model, comm, options);
      const torch::Tensor input = comm.rank() == 0 ? torch::tensor({{6.0F, 0.0F}}) : torch::tensor({{0.0F, 8.0F}});
      EXPECT_FALSE(engine.engine().gradient_norm());  // before the first step
      for (int step = 0; step < 5; ++step) {
        engine.begin_step();
        engine.backward(model(input).sum(), 0.5);
        engine.finish_step(0.01);
      }
      if (comm.rank() == 0) norm = engine.engine().gradient_norm();
      engine.settle();
    }));
    return norm;
  };
  for (const char* strategy : {"bsp", "wfbp", "buckets"}) EXPECT_EQ(norm_under(strategy, 0), 5) << strategy;
  EXPECT_EQ(norm_under("bsp", 0.1), 5);  // before it is clipped
  for (const char* strategy : {"dear", "zero1"}) EXPECT_FALSE(norm_under(strategy, 0)) << strategy;
}

TEST(Engine, TreatsAParameterThatOnlySomeRanksOrStepsUseAsTorchDoes) {
  Case run = adam_run();
  // First used in step 3, by rank 1 alone: its Adam corrections start there.
  run.uses_sometimes = [](int rank, int step) { return rank == 1 && step >= 3 && step != 5; };
  expect_near(weights_of(run)[0], adam_reference(run));
}

TEST(Engine, GivesAnOptimizerThatNeedsWholeTensorsOneAfterTheOther) {
  torch::manual_seed(6);
  torch::nn::Linear model(5, 3);
  OptimizerOptions lamb;
  lamb.name = "lamb";
  lamb.weight_decay = 0.1;
  // The same steps on each tensor by itself. The gradients are the same in all: the sum's do not depend on weights.
  const torch::Tensor input = torch::randn({4, 5});
  Weights expected = copies(*model);
  const Weights gradients = {input.sum(0).expand({3, 5}).contiguous(), torch::full({3}, 4.0)};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    torch::Tensor flat = expected[i].view({-1});
    const auto optimizer = make_optimizer(lamb, flat);
    for (int64_t step = 1; step <= 5; ++step)
      optimizer->update({flat, gradients[i].view({-1}), 0, flat.numel(), step}, 0.05, {});
  }
  Weights reached;
  expect_no_errors(run_rank_threads(1, [&](Communicator& comm) {
    EngineOptions options;
    options.optimizer = lamb;
    Engine engine(*model, comm, options);
    for (int step = 0; step < 5; ++step) {
      engine.begin_step();
      engine.backward(model(input).sum(), 1);
      engine.finish_step(0.05);
    }
    engine.settle();
    reached = copies(*model);
  }));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(torch::allclose(reached[i], expected[i], 1e-4, 1e-6)) << reached[i] << expected[i];
}

TEST(Engine, LeavesUnusedAndFrozenParametersAlone) {
  Case run = adam_run();
  run.engine.optimizer.weight_decay = 0.1;
  const Weights weights = weights_of(run)[0];
  OddNetwork fresh;
  std::size_t i = 0;
  for (const auto& parameter : fresh.named_parameters()) {
    if (parameter.key() == "unused" || parameter.key() == "frozen") {
      EXPECT_TRUE(torch::equal(weights[i], parameter.value())) << parameter.key();
    }
    ++i;
  }
}

TEST(Engine, GoesOnWhenARankHasNoSamplesLeft) {
  std::vector<Weights> weights(3);
  torch::manual_seed(5);
  std::vector<std::shared_ptr<OddNetwork>> models = {std::make_shared<OddNetwork>(), std::make_shared<OddNetwork>(),
                                                     std::make_shared<OddNetwork>()};
  expect_no_errors(run_rank_threads(3, [&](Communicator& comm) {
    OddNetwork& model = *models[static_cast<std::size_t>(comm.rank())];
    TuneOptions options;
    options.strategy = "wfbp";
    options.profile_steps = 2;
    TunedEngine engine(model, comm, options);
    for (int step = 0; step < 5; ++step) {
      engine.begin_step();
      // Five samples for three ranks, and in odd steps only rank 1 has any: 2, 2, 1 or 0, 1, 0.
      const int64_t mine = step % 2 == 0 ? (comm.rank() < 2 ? 2 : 1) : (comm.rank() == 1 ? 1 : 0);
      const int64_t all = step % 2 == 0 ? 5 : 1;
      if (mine > 0) {
        const Samples samples = make_samples(step * 10 + (step % 2 == 0 ? comm.rank() * 2 : 0), mine);
        engine.backward(model.loss(samples.x, samples.y), static_cast<double>(mine) / static_cast<double>(all));
      }
      engine.finish_step(0.05);
    }
    weights[static_cast<std::size_t>(comm.rank())] = copies(model);
  }));
  expect_equal(weights[1], weights[0], "rank 1");
  expect_equal(weights[2], weights[0], "rank 2");

  torch::manual_seed(5);
  OddNetwork alone;
  torch::optim::SGD sgd(alone.parameters(), torch::optim::SGDOptions(0.05));
  for (int step = 0; step < 5; ++step) {
    sgd.zero_grad();
    const Samples samples = make_samples(step * 10, step % 2 == 0 ? 5 : 1);
    alone.loss(samples.x, samples.y).backward();
    sgd.step();
  }
  expect_near(weights[0], copies(alone));
}

TEST(Engine, KeepsTiedWeightsTied) {
  struct Tied : torch::nn::Module {
    Tied() {
      a = register_module("a", torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
      b = register_module("b", torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
      b->weight = b->register_parameter("weight_", a->weight);
    }
    torch::nn::Linear a{nullptr}, b{nullptr};
  };
  expect_no_errors(run_rank_threads(2, [&](Communicator& comm) {
    Tied model;
    TunedEngine engine(model, comm, TuneOptions());
    engine.begin_step();
    engine.backward(model.b(torch::tanh(model.a(torch::ones({2, 4})))).sum(), 0.5);
    engine.finish_step(0.1);
    if (!torch::equal(model.a->weight, model.b->weight)) throw Error("the tied weights came apart");
  }));
}

TEST(Engine, GivesEveryRankTheFirstRanksBatchNormStatistics) {
  std::vector<torch::Tensor> means(2);
  expect_no_errors(run_rank_threads(2, [&](Communicator& comm) {
    torch::nn::BatchNorm1d norm(3);
    TunedEngine engine(*norm, comm, TuneOptions());
    engine.begin_step();
    engine.backward(norm(torch::arange(12, torch::kFloat32).view({4, 3}) * (comm.rank() + 1)).pow(2).mean(), 0.5);
    engine.finish_step(0.1);
    if (comm.rank() == 1 && norm->running_mean.sum().item<double>() < 2)
      throw Error("the statistics should differ before");
    engine.settle();
    means[static_cast<std::size_t>(comm.rank())] = norm->running_mean.clone();
  }));
  EXPECT_TRUE(torch::equal(means[0], means[1]));
}

TEST(Engine, MeasuresAProfileInTheOrderOfBackward) {
  expect_no_errors(run_rank_threads(2, [&](Communicator& comm) {
    OddNetwork model;
    Case run;
    run.engine.strategy = "wfbp";
    TunedEngine engine(model, comm, run.engine);
    train(model, engine, run, comm);
    const Profile& profile = engine.profile().value();
    std::vector<std::string> names;
    for (const GradientProfile& gradient : profile.gradients) names.push_back(gradient.name);
    if (names.size() != 6 || names[0].rfind("second.", 0) != 0 || names[2].rfind("first.", 0) != 0)
      throw Error("unexpected order: {} {} {}", names[0], names[1], names[2]);
    if (!(profile.gradients[3].ready_s >= profile.gradients[0].ready_s &&
          profile.backward_s >= profile.gradients[3].ready_s))
      throw Error("times do not fit the order");
    if (!(profile.gradients[0].needed_s > profile.gradients[3].needed_s && profile.gradients[3].needed_s > 0))
      throw Error("forward needs the first layer first");
    if (engine.plan().transfers.size() != 6) throw Error("{} transfers", engine.plan().transfers.size());
  }));
}

TEST(Engine, RefusesRanksWithDifferentModels) {
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    OddNetwork model(comm.rank() == 0 ? 6 : 7);
    const TunedEngine engine(model, comm, TuneOptions());
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("first.weight"), std::string::npos) << error;
}

TEST(Engine, NamesTheTransferWhenAPeerStops) {
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    OddNetwork model;
    TuneOptions options;
    TunedEngine engine(model, comm, options);
    const Samples samples = make_samples(0, 4);
    for (int step = 0; step < 3; ++step) {
      if (comm.rank() == 1 && step == 2) throw Error("out of luck");
      engine.begin_step();
      engine.backward(model.loss(samples.x, samples.y), 0.5);
      engine.finish_step(0.1);
    }
  });
  EXPECT_NE(errors[1].find("out of luck"), std::string::npos) << errors[1];
  EXPECT_NE(errors[0].find("rank 0/2, step 2: all_reduce of transfer 0"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("out of luck"), std::string::npos) << errors[0];
}

TEST(Engine, NamesTheTransferAndThePeerThatDoesNotCome) {
  std::atomic<bool> over{false};
  const auto errors = run_rank_threads(2,
                                       [&](Communicator& comm) {
                                         OddNetwork model;
                                         TunedEngine engine(model, comm, {});
                                         const Samples samples = make_samples(0, 4);
                                         engine.begin_step();
                                         engine.backward(model.loss(samples.x, samples.y), 0.5);
                                         if (comm.rank() == 1) {
                                           while (!over) std::this_thread::yield();
                                           throw Error("woken");
                                         }
                                         try {
                                           engine.finish_step(0.1);
                                         } catch (...) {
                                           over = true;
                                           throw;
                                         }
                                       },
                                       {std::chrono::seconds(60), std::chrono::milliseconds(500)});
  EXPECT_NE(errors[0].find("rank 0/2, step 0: all_reduce of transfer 0"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("rank 1 of 2"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("has not come"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("--comm-timeout"), std::string::npos) << errors[0];
}

TEST(IssueLog, NamesTheFirstTransferAndRankThatDiffer) {
  const auto errors = run_rank_threads(3, [&](Communicator& comm) {
    IssueLog log;
    const auto issue = [&](int64_t step, const char* name, int64_t begin) {
      Transfer transfer;
      transfer.name = name;
      transfer.begin = begin;
      transfer.end = begin + 10;
      log.add(step, transfer);
    };
    issue(0, "a", 0);
    log.compare(comm);
    // The same sizes, so the transport cannot notice; rank 2 has the order wrong.
    issue(1, comm.rank() == 2 ? "b" : "a", comm.rank() == 2 ? 10 : 0);
    issue(1, comm.rank() == 2 ? "a" : "b", comm.rank() == 2 ? 0 : 10);
    log.compare(comm);
  });
  for (const std::string& error : errors)
    EXPECT_NE(error.find("transfer 1 was 'b' [10, 20) of step 1 on rank 2 and 'a' [0, 10) of step 1 on rank 0"),
              std::string::npos)
        << error;
}

}  // namespace
}  // namespace tutti
