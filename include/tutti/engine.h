#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"
#include "comm/ps/push_pull.h"
#include "engine/comm_thread.h"
#include "engine/device_link.h"
#include "engine/flat_space.h"
#include "engine/gradient_hooks.h"
#include "engine/issue_log.h"
#include "engine/optimizer.h"
#include "tune/step_profiler.h"
#include "tune/strategy_search.h"
#include "tutti/communicator.h"
#include "tutti/strategy.h"

namespace tutti {

/// How much of a training run `auto` spends on its choice.
struct AutoOptions {
  std::size_t candidates = 6;  // plans that are tried, at most, beside bsp
  double window_s = 0.4;       // that each runs for in each round; four steps at least
  double watch_s = 10;         // how often, afterwards, it looks whether steps still take as long; 50 steps at least
  int64_t steps = std::numeric_limits<int64_t>::max();  // no new round after so many
};

struct EngineOptions {
  std::string strategy = "buckets";
  StrategyOptions strategy_options;
  OptimizerOptions optimizer;
  PushPull* servers = nullptr;  // for strategies that use them; outlives the engine
  std::string wire = "fp32";    // the format in which gradients travel
  double topk_ratio = 0.01;     // of the gradients, that wire format topk keeps
  double clip_norm = 0;         // global norm that gradients are clipped to; 0: never
  int profile_steps = 3;        // measured under `bsp` before the strategy makes its plan; `auto` takes some more
  AutoOptions auto_options;
  std::chrono::milliseconds comm_timeout{300'000};
  Trace* trace = nullptr;  // records what both threads do; outlives the engine
};

/// Throws UsageError when the strategy cannot carry the wire format.
void check_wire(const EngineOptions& options);

struct StepTimes {
  double comm_busy_s = 0;     // transfers under way; of the step before, where transfers cross the end of a step
  double comm_exposed_s = 0;  // computation waited for them
};

/// Runs training steps of one rank: gradients become ready, travel as the Plan says, and the optimizer applies the
/// sums. Every rank ends each step with the same weights.
///
///   engine.begin_step();
///   engine.backward(model.loss(batch), weight);    // again for each further micro-batch; not at all without samples
///   engine.finish_step(learning_rate);
///
/// Gradients are summed over ranks, so `weight` is what this micro-batch counts in the whole batch: its samples over
/// the samples of all ranks and micro-batches of the step. One calling thread; borrows model and communicator.
/// A parameter that gets no gradient on some rank counts as zero there; one that has never got any on any rank is left
/// alone, as torch::optim does.
class Engine {
 public:
  /// A collective: gives all ranks rank 0's values. Throws Error when their models differ.
  Engine(torch::nn::Module& model, Communicator& comm, const EngineOptions& options);
  ~Engine();

  void begin_step();
  void backward(const torch::Tensor& loss, double weight, bool is_last = true);
  StepTimes finish_step(double learning_rate);

  /// Completes what is under way: afterwards, until the next backward, the communicator is free for others.
  void drain();
  /// Drains, gives all ranks rank 0's buffers (batch-norm statistics) and checks that ranks issued the same transfers.
  /// A collective, between steps: before evaluation, checkpoints and the end.
  void settle();

  int64_t steps_done() const { return steps_done_; }
  /// The plan in use: `bsp` until the profile is there.
  const Plan& plan() const { return plan_; }
  /// What the links cost, when the strategy wanted to know.
  const std::optional<Links>& links() const { return links_; }
  /// What a person should know about the plan ("" when nothing): an option that keeps the strategy from what it could
  /// do.
  const std::string& remark() const { return remark_; }
  /// Memory that the optimizer's state takes on this rank.
  int64_t optimizer_state_bytes() const;
  /// What was measured; empty until then.
  const std::optional<Profile>& profile() const { return profile_; }
  /// How often a plan was decided on: once, or again where `auto` finds that steps have changed.
  int decisions() const { return decisions_; }
  /// Of strategy `auto`: what it tries or has tried; null before, and for other strategies.
  const StrategySearch* search() const { return search_ ? &*search_ : nullptr; }

  const FlatSpace& space() const { return space_; }

  /// Optimizer state for a checkpoint: tensors by name, each a copy in its parameter's shape. A collective, after
  /// settle().
  std::vector<std::pair<std::string, torch::Tensor>> optimizer_state();
  /// When each parameter was first updated (0: never), in the model's order; the other half of the state.
  const std::vector<int64_t>& first_updates() const { return first_update_; }
  /// Continues from a checkpoint. `find` returns a state tensor by name or throws.
  void restore(int64_t steps_done, std::vector<int64_t> first_updates,
               const std::function<torch::Tensor(const std::string&)>& find);

 private:
  /// The optimizer of a share of the flat space, whose buffers begin at element `begin`.
  struct Share {
    int64_t begin = 0, end = 0;
    std::unique_ptr<FlatOptimizer> optimizer;
  };

  void broadcast(torch::Tensor tensor);
  void watch_forward();
  void wait_for_parameter(std::size_t parameter);
  void open_step();
  void on_gradient(std::size_t parameter);
  void update_piece(const UpdatePiece& piece, TraceBuffer* recording);
  /// Whether gradients come to their places all at once, after backward: on a GPU, where each copy is a kernel, and
  /// nobody waits for one of them.
  bool copies_at_the_end() const { return comm_thread_ == nullptr && space_.gradients().is_cuda(); }
  void copy_gradients();
  void agree_on_new_parameters();
  torch::Tensor clip_factor() const;
  void update(const Share& share, int64_t begin, int64_t end, const torch::Tensor& gradient_scale);
  void update_all();
  TraceBuffer* recording() const { return options_.trace != nullptr ? options_.trace->compute() : nullptr; }
  bool crosses_steps() const { return comm_thread_ != nullptr && plan_.barrier == Barrier::next_forward; }
  void start_comm_thread();
  bool is_auto() const { return options_.strategy == kAutoStrategy; }
  int profile_steps() const;
  void measure_links();
  void choose_plan();
  void begin_search();
  void search_on();
  void adapt(Plan& plan) const;
  void adopt(const Plan& plan);
  void announce_messages();
  void split_optimizer();
  void unite_optimizer();
  std::vector<torch::Tensor> whole_state();

  torch::nn::Module& model_;
  Communicator& comm_;
  const EngineOptions options_;
  FlatSpace space_;
  Share whole_;                               // the optimizer of everything, unless it is sharded
  std::vector<std::optional<Share>> shares_;  // by transfer, for a sharded optimizer
  std::unique_ptr<DeviceLink> link_;
  Wire wire_;
  std::optional<StepProfiler> profiler_;  // while profiling
  std::optional<Profile> profile_;
  std::optional<Links> links_;
  Span probe_memory_;  // that links were measured with, for the next time
  std::optional<StrategySearch> search_;
  int decisions_ = 0;
  std::string remark_;
  Plan plan_;
  IssueLog log_;
  std::vector<char> written_;           // by parameter: this step has written its gradient
  std::vector<int64_t> first_update_;   // by parameter
  std::vector<std::size_t> unwatched_;  // parameters that forward was never seen to read: waited for before it begins
  bool is_last_micro_batch_ = true;
  bool is_step_open_ = false;
  int64_t steps_done_ = 0;
  int64_t updating_step_ = 0;  // of the update under way: steps_done_ may be ahead of it
  double learning_rate_ = 0;
  double waited_s_ = 0;
  double busy_before_s_ = 0;                 // transfers of the step before
  int64_t forward_begin_ns_ = 0;             // while recording
  std::unique_ptr<ForwardWatch> gate_;       // makes forward wait for parameters that are still under way; for traces
  std::unique_ptr<CommThread> comm_thread_;  // none with one rank
  GradientHooks hooks_;                      // last member: calls back into the others
};

}  // namespace tutti
