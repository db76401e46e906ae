#pragma once

#include <tutti/engine.h>
#include <tutti/links.h>
#include <tutti/profile.h>
#include <tutti/strategy.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tutti {

class StepProfiler;
class StrategySearch;

/// How much of a training run `auto` spends on its choice.
struct AutoOptions {
  std::size_t candidates = 6;  // plans that are tried, at most, beside bsp
  double window_s = 0.4;       // that each runs for in each round; four steps at least
  double watch_s = 10;         // how often, afterwards, it looks whether steps still take as long; 50 steps at least
  int64_t steps = std::numeric_limits<int64_t>::max();  // no new round after so many
};

/// How an engine trains, and how it comes to its plan.
struct TuneOptions : EngineOptions {
  std::string strategy = "buckets";
  StrategyOptions strategy_options;
  int profile_steps = 3;  // measured under `bsp` before the strategy makes its plan; `auto` takes some more
  AutoOptions auto_options;
};

/// Throws UsageError when the strategy cannot carry the wire format.
void check_wire(const TuneOptions& options);

/// An engine that comes to its plan by itself: the first steps are profiled under `bsp`, then the strategy makes its
/// plan from what was measured, or `auto` tries several. Steps as with Engine.
class TunedEngine {
 public:
  /// A collective, as Engine's. Throws UsageError for a strategy that cannot run with these options.
  TunedEngine(const TrainedTensors& tensors, Communicator& comm, const TuneOptions& options);
  TunedEngine(const torch::nn::Module& module, Communicator& comm, const TuneOptions& options);
  ~TunedEngine();

  void begin_step() { engine_.begin_step(); }
  void backward(const torch::Tensor& loss, double weight, bool is_last = true) {
    engine_.backward(loss, weight, is_last);
  }
  StepTimes finish_step(double learning_rate);
  StepTimes finish_step(const std::vector<double>& learning_rates);
  void expect_backward(double weight, bool is_last, std::function<void()> when_done = {}) {
    engine_.expect_backward(weight, is_last, std::move(when_done));
  }
  void begin_forward() { engine_.begin_forward(); }
  void drain() { engine_.drain(); }
  void settle();

  /// Runs a plan that was decided on before, say by the run that a checkpoint comes from: nothing is measured any more.
  /// A collective, before the first step, with the same plan on all ranks.
  void adopt(const Plan& plan, const Profile& profile);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  /// The plan in use: `bsp` until the profile is there.
  const Plan& plan() const { return engine_.plan(); }
  const std::string& remark() const { return engine_.remark(); }
  /// What was measured; empty until then.
  const std::optional<Profile>& profile() const { return profile_; }
  /// What the links cost, when the strategy wanted to know.
  const std::optional<Links>& links() const { return links_; }
  /// How often a plan was decided on: once, or again where `auto` finds that steps have changed.
  int decisions() const { return decisions_; }
  /// Of strategy `auto`: what it tries or has tried; null before, and for other strategies.
  const StrategySearch* search() const { return search_.get(); }

 private:
  bool is_auto() const { return options_.strategy == kAutoStrategy; }
  bool searches() const { return is_auto() && comm_.size() > 1; }
  int profile_steps() const;
  void begin_profile();
  void end_profile();
  void measure_links();
  void choose_plan();
  void begin_search();
  void search_on();

  Communicator& comm_;
  const TuneOptions options_;
  Engine engine_;
  std::unique_ptr<StepProfiler> profiler_;  // while profiling
  std::optional<Profile> profile_;
  std::optional<Links> links_;
  Span probe_memory_;  // that links were measured with, for the next time
  std::unique_ptr<StrategySearch> search_;
  int decisions_ = 0;
  int64_t last_step_ = 0;  // that finish_step() has seen
};

}  // namespace tutti
