// A recorded and repeated step ends with the same bits as an eager one, for every kind of model and of optimizer.

#include "tutti/captured_step.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/trace.h"
#include "model/small_models.h"
#include "support/gpu.h"
#include "support/rank_threads.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

// A step is recorded to be profiled, after three eager ones, and repeated eleven times. Then there is a plan, and the
// same again without a profile.
constexpr int kSteps = 50;
constexpr int kSmallerStep = 30;
constexpr int kStop = 22;  // of a run that another one goes on with
constexpr int kTracedStep = 24, kTracedSteps = 4;
constexpr int64_t kBatch = 4;

struct Case {
  std::string model;
  std::string optimizer = "sgd";
  bool is_bf16 = false;
  int accumulate = 1;
  double clip_norm = 0;
  bool checkpoints_activations = false;
  bool asks_the_host = false;
  bool is_traced = false;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.model << " " << one.optimizer << (one.is_bf16 ? " bf16" : " fp32") << ", " << one.accumulate
             << " micro-batches, clipped to " << one.clip_norm;
}

using Tensors = std::map<std::string, torch::Tensor>;

/// What a run leaves, and all that another one needs to go on.
struct Outcome {
  Tensors model, optimizer;
  std::vector<int64_t> first_updates;
  int steps = 0;
  double loss_sum = 0;
  bool is_recorded = false;
  std::string remark;
  std::optional<Profile> profile;
  std::vector<TraceEvent> traced;
};

/// Trains a model from step to step as `tutti train` does, on batches that differ, with a learning rate that changes.
class Run {
 public:
  Run(const Case& one, bool captured, const Outcome* from, Communicator& comm) : one_(one), stream_(device_) {
    ModelOptions model_options = small_options(one.model);
    model_options.checkpoint_activations = one.checkpoints_activations;
    traits_ = model_options.data;
    torch::manual_seed(11);
    model_ = make_model(one.model, model_options);
    model_->train();
    if (from != nullptr) load(from->model);
    Batch unused = example_batch(traits_, 1);
    move_to({"", device_, one.is_bf16}, *model_, unused);
    TuneOptions options;
    options.optimizer.name = one.optimizer;
    options.optimizer.momentum = one.optimizer == "sgd" ? 0.9 : 0;
    options.optimizer.weight_decay = 0.01;
    options.clip_norm = one.clip_norm;
    if (one.is_traced) options.trace = &trace_;
    engine_.emplace(*model_, comm, options);
    if (from != nullptr)
      engine_->engine().restore(from->steps, from->first_updates,
                                [from](const std::string& name) { return from->optimizer.at(name); });
    captured_.emplace(engine_->engine(), captured);
    loss_sum_ = torch::zeros({}, device_);
  }

  void train(int begin, int end) {
    for (int step = begin; step < end; ++step) {
      const bool is_smaller = step == kSmallerStep;
      const std::vector<Batch> batches = make_batches(step, is_smaller ? kBatch - 1 : kBatch);
      if (!is_smaller) copy_to_inputs(batches);
      torch::manual_seed(static_cast<uint64_t>(7000 + step));
      const double rate = 0.01 / (1 + step);
      if (is_smaller)
        run_step(batches, rate);
      else
        captured_->run(rate, [&] { return run_step(inputs_, rate); });
    }
    steps_ = end;
  }

  Outcome outcome() {
    engine_->settle();
    Outcome outcome;
    for (const auto& item : model_->named_parameters()) outcome.model[item.key()] = on_cpu(item.value());
    for (const auto& item : model_->named_buffers()) outcome.model[item.key()] = on_cpu(item.value());
    for (const auto& [name, tensor] : engine_->engine().optimizer_state()) outcome.optimizer[name] = tensor;
    outcome.first_updates = engine_->engine().first_updates();
    outcome.steps = steps_;
    outcome.loss_sum = loss_sum_.item<double>();
    outcome.is_recorded = captured_->is_recorded();
    outcome.remark = captured_->remark();
    outcome.profile = engine_->profile();
    outcome.traced = trace_.compute_events();
    return outcome;
  }

 private:
  static torch::Tensor on_cpu(const torch::Tensor& tensor) { return tensor.detach().cpu().contiguous().clone(); }

  void load(const Tensors& tensors) {
    const torch::NoGradGuard no_grad;
    for (const auto& item : model_->named_parameters()) item.value().detach().copy_(tensors.at(item.key()));
    for (const auto& item : model_->named_buffers()) item.value().detach().copy_(tensors.at(item.key()));
  }

  std::vector<Batch> make_batches(int step, int64_t size) const {
    std::vector<Batch> batches;
    for (int micro = 0; micro < one_.accumulate; ++micro) {
      torch::manual_seed(static_cast<uint64_t>(100 * step + micro));
      Batch batch = example_batch(traits_, size);
      for (torch::Tensor& input : batch.inputs) input = input.to(device_);
      batch.target = batch.target.to(device_);
      if (model_->prefers_channels_last())
        batch.inputs[0] = batch.inputs[0].contiguous(torch::MemoryFormat::ChannelsLast);
      batches.push_back(batch);
    }
    return batches;
  }

  void copy_to_inputs(const std::vector<Batch>& batches) {
    if (inputs_.empty()) inputs_ = batches;
    for (std::size_t micro = 0; micro < batches.size(); ++micro) {
      for (std::size_t i = 0; i < batches[micro].inputs.size(); ++i)
        inputs_[micro].inputs[i].copy_(batches[micro].inputs[i]);
      inputs_[micro].target.copy_(batches[micro].target);
    }
  }

  StepTimes run_step(const std::vector<Batch>& batches, double rate) {
    engine_->begin_step();
    for (std::size_t i = 0; i < batches.size(); ++i) {
      torch::Tensor loss;
      {
        const Bf16Autocast autocast(one_.is_bf16);
        loss = model_->loss(batches[i]);
      }
      if (one_.asks_the_host) {
        EXPECT_FALSE(std::isnan(loss.item<float>()));
      }
      engine_->backward(loss, 1.0 / one_.accumulate, i + 1 == batches.size());
      loss_sum_.add_(loss.detach());
    }
    return engine_->finish_step(rate);
  }

  const torch::Device device_{torch::kCUDA, 0};
  const Case one_;
  ComputeStream stream_;
  SampleTraits traits_;
  std::shared_ptr<Model> model_;
  Trace trace_{{kTracedStep, kTracedSteps}};
  std::optional<TunedEngine> engine_;
  std::optional<CapturedStep> captured_;
  torch::Tensor loss_sum_;
  std::vector<Batch> inputs_;
  int steps_ = 0;
};

Outcome train(const Case& one, bool captured, int end = kSteps, const Outcome* from = nullptr) {
  Outcome outcome;
  const auto errors = run_rank_threads(1, [&](Communicator& comm) {
    Run run(one, captured, from, comm);
    run.train(from != nullptr ? from->steps : 0, end);
    outcome = run.outcome();
  });
  EXPECT_EQ(errors[0], "") << one;
  return outcome;
}

/// The tensors that differ, by name.
std::string differences(const Outcome& a, const Outcome& b) {
  std::string names;
  const auto compare = [&names](const Tensors& one, const Tensors& other) {
    if (one.size() != other.size()) names += " (another number of tensors)";
    for (const auto& [name, tensor] : one) {
      const auto found = other.find(name);
      if (found == other.end() || !torch::equal(tensor, found->second)) names += " " + name;
    }
  };
  compare(a.model, b.model);
  compare(a.optimizer, b.optimizer);
  return names;
}

class CapturedSteps : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  static void TearDownTestSuite() { at::globalContext().setDeterministicAlgorithms(false, false); }

  static void expect_same_bits(const Case& one) {
    const Outcome eager = train(one, false);
    ASSERT_FALSE(eager.is_recorded);
    ASSERT_EQ(differences(eager, train(one, false)), "") << one << ": the kernels themselves differ from run to run";
    const Outcome captured = train(one, true);
    EXPECT_EQ(captured.remark, "") << one;
    EXPECT_TRUE(captured.is_recorded) << one;
    EXPECT_EQ(differences(eager, captured), "") << one;
    EXPECT_EQ(eager.loss_sum, captured.loss_sum) << one;
  }
};

const char* const kModels[] = {"mnist-cnn", "resnet18", "transformer", "bert-base", "unet"};

TEST_F(CapturedSteps, EqualEagerOnesForEveryModelAndOptimizer) {
  TUTTI_NEEDS_GPU();
  for (const char* const model : kModels)
    for (const char* const optimizer : {"sgd", "adam", "adamw", "lamb"}) expect_same_bits({model, optimizer});
}

TEST_F(CapturedSteps, EqualEagerOnesInBf16) {
  TUTTI_NEEDS_GPU();
  for (const char* const model : kModels) expect_same_bits({model, "adamw", true});
}

TEST_F(CapturedSteps, EqualEagerOnesWithMicroBatchesAndClipping) {
  TUTTI_NEEDS_GPU();
  for (const char* const model : kModels) expect_same_bits({model, "adam", true, 3, 0.1});
}

TEST_F(CapturedSteps, GoOnAfterACheckpointAsIfNothingHadHappened) {
  TUTTI_NEEDS_GPU();
  for (const char* const model : kModels) {
    const Case one{model, "adamw", false, 2, 0.5};
    const Outcome whole = train(one, false);
    const Outcome half = train(one, true, kStop);
    EXPECT_TRUE(half.is_recorded) << one;
    const Outcome resumed = train(one, true, kSteps, &half);
    EXPECT_TRUE(resumed.is_recorded) << one;
    EXPECT_EQ(differences(whole, resumed), "") << one;
  }
}

TEST_F(CapturedSteps, EqualEagerOnesWhereActivationsAreComputedAgain) {
  TUTTI_NEEDS_GPU();
  for (const char* const model : {"transformer", "unet"}) {
    Case one{model, "adam"};
    one.checkpoints_activations = true;
    EXPECT_EQ(differences(train(one, false), train(one, true)), "") << one;
  }
}

TEST_F(CapturedSteps, AreProfiledAndTracedAsTheDeviceRepeatsThem) {
  TUTTI_NEEDS_GPU();
  Case one{"transformer", "adam", true, 2};
  const Outcome untraced = train(one, true);
  one.is_traced = true;
  const Outcome traced = train(one, true);
  EXPECT_TRUE(traced.is_recorded) << traced.remark;
  EXPECT_EQ(differences(untraced, traced), "");

  ASSERT_TRUE(traced.profile.has_value());
  const Profile& profile = *traced.profile;
  EXPECT_GT(profile.forward_s, 0);
  EXPECT_GT(profile.update_s, 0);
  EXPECT_EQ(profile.gradients.front().name.rfind("classifier", 0), 0) << profile.gradients.front().name;
  for (const GradientProfile& gradient : profile.gradients) {
    EXPECT_GT(gradient.ready_s, 0) << gradient.name;
    EXPECT_LE(gradient.ready_s, profile.backward_s * (1 + 1e-6)) << gradient.name;
  }

  std::map<int64_t, std::vector<TraceEvent>> steps;
  for (const TraceEvent& event : traced.traced) steps[event.step].push_back(event);
  EXPECT_EQ(steps.size(), static_cast<std::size_t>(kTracedSteps));
  for (const auto& [step, events] : steps) {
    const TraceEvent whole = events.back();
    ASSERT_EQ(whole.kind, TraceKind::step) << step;
    std::map<TraceKind, std::size_t> seen;
    for (const TraceEvent& event : events) {
      ++seen[event.kind];
      EXPECT_LE(event.begin_ns, event.end_ns);
      EXPECT_GE(event.begin_ns, whole.begin_ns) << "step " << step << ", kind " << static_cast<int>(event.kind);
      EXPECT_LE(event.end_ns, whole.end_ns) << "step " << step << ", kind " << static_cast<int>(event.kind);
    }
    EXPECT_EQ(seen[TraceKind::forward], 2U) << "of two micro-batches";
    EXPECT_EQ(seen[TraceKind::backward], 2U);
    EXPECT_EQ(seen[TraceKind::update], 1U);
    EXPECT_EQ(seen[TraceKind::gradient], profile.gradients.size());
  }
}

TEST_F(CapturedSteps, RunEagerlyWhereTheHostIsAskedAndSayWhy) {
  TUTTI_NEEDS_GPU();
  Case one{"transformer", "adam"};
  one.asks_the_host = true;
  const Outcome eager = train(one, false), captured = train(one, true);
  EXPECT_FALSE(captured.is_recorded);
  EXPECT_NE(captured.remark, "");
  EXPECT_EQ(differences(eager, captured), "");
}

}  // namespace
}  // namespace tutti
