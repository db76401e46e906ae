// Ranks that repeat recorded steps end with the same bits as ranks that queue them eagerly, under every strategy: with
// NCCL's calls inside the graph, and with the host carrying the gradients. They are processes that share a GPU:
// NCCL_HOSTID makes NCCL take each for a machine of its own.

#include <gtest/gtest.h>
#include <signal.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/trace.h"
#include "comm/exchange.h"
#include "comm/nccl/nccl.h"
#include "comm/shm/shm.h"
#include "support/ranks.h"
#include "tutti/captured_step.h"
#include "tutti/tuned_engine.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

constexpr int kSteps = 44;
constexpr int kSettledStep = 26;  // as before an evaluation
constexpr int kSmallerStep = 29;
constexpr int kTracedStep = 32, kTracedSteps = 4;
constexpr int kSearchedSteps = 500;  // `auto` has chosen: two plans, in at most 24 rounds of 6 steps each

struct Network : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 300));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(300));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(300, 200));
  torch::nn::Linear third = register_module("third", torch::nn::Linear(200, 5));
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y) {
    const torch::Tensor hidden = torch::dropout(torch::relu(norm(first(x))), 0.1, true);
    return (third(torch::tanh(second(hidden))) - y).pow(2).mean();
  }
};

struct Case {
  std::string strategy;
  std::string optimizer = "sgd";
  std::string wire = "fp32";
  double clip_norm = 0;
  int accumulate = 1;
};

struct Outcome {
  std::vector<torch::Tensor> weights;
  bool is_recorded = false;
  std::string remark;
  std::size_t transfers = 0;  // in the plan
  std::vector<TraceEvent> computed, carried;
};

ShmOptions shm_options(int rank, int size, const char* what) {
  ShmOptions options;
  options.rank = rank;
  options.size = size;
  options.job = fmt::format("captured-{}-{}", what, ::getppid());
  return options;
}

std::unique_ptr<Communicator> join_nccl(int rank, int size, seconds timeout = seconds(60)) {
  ::setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
  NcclOptions options;
  options.rank = rank;
  options.size = size;
  options.timeout = timeout;
  options.share = [&](const std::string& text) {
    return broadcast_text(*make_shm_communicator(shm_options(rank, size, "id")), text);
  };
  return make_nccl_communicator(options);
}

/// `each_step` is called before each.
Outcome train(const Case& one, bool captured, Communicator& comm, const std::function<void(int)>& each_step = {},
              int steps = kSteps) {
  const torch::Device device(torch::kCUDA, 0);
  const ComputeStream stream(device);
  torch::manual_seed(3);
  Network model;
  model.to(device);
  TuneOptions options;
  options.strategy = one.strategy;
  options.optimizer.name = one.optimizer;
  options.optimizer.momentum = one.optimizer == "sgd" ? 0.9 : 0;
  options.clip_norm = one.clip_norm;
  options.wire = one.wire;
  options.auto_options.candidates = 1;
  options.auto_options.window_s = 0;
  options.strategy_options.bucket_bytes = 40'000;
  options.strategy_options.first_bucket_bytes = 4'000;
  options.strategy_options.partition_bytes = 50'000;
  options.strategy_options.credit_bytes = 100'000;
  Trace trace({kTracedStep, kTracedSteps});
  options.trace = &trace;
  TunedEngine engine(model, comm, options);
  CapturedStep steps_of(engine.engine(), captured);
  const torch::Tensor x = torch::empty({8 * one.accumulate, 20}, device);
  const torch::Tensor y = torch::empty({8 * one.accumulate, 5}, device);
  for (int step = 0; step < steps; ++step) {
    if (each_step) each_step(step);
    torch::manual_seed(static_cast<uint64_t>(1000 * step + comm.rank()));
    x.normal_();
    y.normal_();
    const double rate = 0.05 / (1 + step);
    const int64_t size = step == kSmallerStep ? 7 : 8;
    const auto run_step = [&] {
      engine.begin_step();
      for (int micro = 0; micro < one.accumulate; ++micro)
        engine.backward(model.loss(x.narrow(0, micro * 8, size), y.narrow(0, micro * 8, size)),
                        1.0 / (comm.size() * one.accumulate), micro + 1 == one.accumulate);
      return engine.finish_step(rate);
    };
    if (step == kSmallerStep)
      run_step();
    else
      steps_of.run(rate, run_step);
    if (step == kSettledStep) engine.settle();
  }
  engine.settle();
  Outcome outcome;
  for (const torch::Tensor& parameter : model.parameters()) outcome.weights.push_back(parameter.detach().cpu());
  outcome.is_recorded = steps_of.is_recorded();
  outcome.remark = steps_of.remark();
  outcome.transfers = engine.plan().transfers.size();
  outcome.computed = trace.compute_events();
  outcome.carried = trace.communication_events();
  return outcome;
}

/// Every step of the window is there, with all of its transfers.
std::string trace_problems(const std::string& name, const Outcome& traced) {
  std::set<int64_t> steps;
  for (const TraceEvent& event : traced.computed)
    if (event.kind == TraceKind::step) steps.insert(event.step);
  std::string text;
  if (steps.size() != static_cast<std::size_t>(kTracedSteps))
    text += fmt::format("{}: {} steps are in the trace\n", name, steps.size());
  std::map<int64_t, std::size_t> carried;
  for (const TraceEvent& event : traced.carried) {
    if (event.kind == TraceKind::transfer) ++carried[event.step];
    if (event.kind == TraceKind::transfer && (event.queued_ns > event.begin_ns || event.begin_ns > event.end_ns))
      text += fmt::format("{}: transfer {} begins before it can\n", name, event.index);
  }
  for (const int64_t step : steps)
    if (steps.count(step + 1) > 0 && carried[step] != traced.transfers)
      text += fmt::format("{}: {} of {} transfers of step {} are in the trace\n", name, carried[step], traced.transfers,
                          step);
  return text;
}

/// What is wrong, a line each.
std::string differences(const Case& one, Communicator& comm, bool is_recorded, int steps) {
  const std::string name = fmt::format("{} {} {} clip {} x{} over {}", one.strategy, one.optimizer, one.wire,
                                       one.clip_norm, one.accumulate, comm.name());
  const Outcome eager = train(one, false, comm, {}, steps), captured = train(one, true, comm, {}, steps);
  std::string text;
  if (captured.is_recorded != is_recorded)
    text += fmt::format("{}: recorded {}: {}\n", name, captured.is_recorded, captured.remark);
  for (std::size_t i = 0; i < eager.weights.size(); ++i)
    if (!torch::equal(eager.weights[i], captured.weights[i]))
      text += fmt::format("{}: parameter {} differs by up to {}\n", name, i,
                          (eager.weights[i] - captured.weights[i]).abs().max().item<float>());
  if (one.strategy != kAutoStrategy) text += trace_problems(name, captured);
  return text;
}

/// All of these, before anything counts as wrong.
void require_same(const std::vector<Case>& cases, Communicator& comm, bool is_recorded = true, int steps = kSteps) {
  std::string text;
  for (const Case& one : cases) text += differences(one, comm, is_recorded, steps);
  require(text.empty(), text);
}

std::vector<Case> under(const std::vector<std::string>& strategies, Case options = {}) {
  std::vector<Case> cases;
  for (const std::string& strategy : strategies) {
    options.strategy = strategy;
    cases.push_back(options);
  }
  return cases;
}

class CapturedRanks : public testing::Test {
 protected:
  void SetUp() override {
    // Not asked of CUDA itself, which does not survive the fork of the ranks.
    if (::access("/dev/nvidia0", F_OK) != 0) GTEST_SKIP() << "no GPU on this machine";
  }
  static void run(const std::function<std::unique_ptr<Communicator>(int rank, int size)>& join,
                  const std::function<void(Communicator& comm)>& body) {
    EXPECT_EQ(failures(run_ranks(
                  RunAs::processes, 2,
                  [&](int rank) {
                    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
                    const auto comm = join(rank, 2);
                    body(*comm);
                  },
                  seconds(280))),
              "");
  }
};

std::unique_ptr<Communicator> join_shm(int rank, int size) {
  return make_shm_communicator(shm_options(rank, size, "shm"));
}

const std::vector<std::string> kInsideAStep = {"bsp", "wfbp", "buckets", "fusion", "mgwfbp"};
const std::vector<std::string> kAcrossSteps = {"bytescheduler", "dear", "zero1"};

std::unique_ptr<Communicator> join_nccl_in_time(int rank, int size) { return join_nccl(rank, size); }

TEST_F(CapturedRanks, EqualEagerOnesUnderEveryStrategyWithNcclInTheGraph) {
  run(join_nccl_in_time, [](Communicator& comm) {
    require_same(under(kInsideAStep), comm);
    require_same(under(kAcrossSteps), comm);
  });
}

TEST_F(CapturedRanks, AreRecordedOnceAutoHasChosen) {
  const auto body = [](Communicator& comm) { require_same({{"auto"}}, comm, true, kSearchedSteps); };
  run(join_nccl_in_time, body);
  run(join_shm, body);
}

TEST_F(CapturedRanks, EqualEagerOnesUnderEveryOptimizerAndOptionWithNcclInTheGraph) {
  run(join_nccl_in_time, [](Communicator& comm) {
    for (const char* const optimizer : {"adam", "adamw", "lamb"})
      require_same(under({"buckets", "dear", "zero1"}, {"", optimizer}), comm);
    for (const Case& options : {Case{"", "adamw", "bf16"}, Case{"", "sgd", "fp32", 0.1}, Case{"", "sgd", "fp32", 0, 3}})
      require_same(under({"wfbp", "bytescheduler", "zero1"}, options), comm);
  });
}

TEST_F(CapturedRanks, EqualEagerOnesWhereTheHostCarriesTheGradients) {
  run(join_shm, [](Communicator& comm) {
    require_same(under(kInsideAStep), comm);
    require_same({{"buckets", "adamw", "bf16", 0.1, 2}, {"wfbp", "lamb"}}, comm);
    require_same(under(kAcrossSteps), comm, /*is_recorded=*/false);
  });
}

TEST_F(CapturedRanks, GiveUpInTimeWhenOneDiesDuringARepeatedStep) {
  const auto results = run_ranks(
      RunAs::processes, 2,
      [](int rank) {
        const auto comm = join_nccl(rank, 2, seconds(5));
        train(
            {"wfbp"}, true, *comm,
            [rank](int step) {
              if (rank == 1 && step == 40) ::raise(SIGKILL);
            },
            2000);
      },
      seconds(60));
  EXPECT_EQ(results[1].signal, SIGKILL);
  EXPECT_FALSE(results[0].ok);
  EXPECT_EQ(results[0].signal, 0) << "it must end by itself: " << results[0].text;
  EXPECT_NE(results[0].text.find("rank 0/2, step "), std::string::npos) << results[0].text;
}

}  // namespace
}  // namespace tutti::test
