#pragma once

#include <c10/core/StreamGuard.h>
#include <torch/types.h>
#include <tutti/engine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tutti {

class StepGraph;

/// While this is alive, the calling thread computes on a stream of its own where the device is a GPU; elsewhere it does
/// nothing. Only work on such a stream can be recorded. Make it before the model comes to the GPU: a gradient is
/// accumulated on the stream on which the engine first saw its parameter.
class ComputeStream {
 public:
  explicit ComputeStream(torch::Device device);

 private:
  c10::OptionalStreamGuard guard_;
};

/// Runs an engine's steps. On a GPU, after a few of them, it records one as a CUDA graph, which the device then
/// repeats: one call of the host for forward, backward and update. Weights are the same as without.
///
///   tutti::ComputeStream stream(device);
///   … model, engine, and tensors for a batch …
///   tutti::CapturedStep steps(engine);
///   for (…) {
///     … write the next batch into its tensors …
///     steps.run(learning_rate, [&] {
///       engine.begin_step();
///       engine.backward(model.loss(batch), 1.0);
///       return engine.finish_step(learning_rate);
///     });
///   }
///
/// A repeated step works on the memory that it was recorded with, and takes the learning rate, the step number and the
/// random numbers of the day. Everything else that the host decides in it (shapes, the weight of the loss, branches)
/// stays as recorded: run a step that differs, as the last and smaller batch of an epoch, without this class, at any
/// time. Steps that are profiled or traced run eagerly, and after Engine::adopt() a new one is recorded.
class CapturedStep {
 public:
  /// `enabled` false: every step runs as given. The engine outlives this.
  explicit CapturedStep(Engine& engine, bool enabled = true);
  ~CapturedStep();

  /// `step` is all of a step, from begin_step() to what finish_step(learning_rate) returns. It is not called when a
  /// recorded one is repeated; then `inputs` is, which writes the next batch into its tensors, and in a trace counts as
  /// part of the step.
  StepTimes run(double learning_rate, const std::function<StepTimes()>& step, const std::function<void()>& inputs = {});

  /// Whether run() would call `step` for its work, and not only to record it.
  bool is_next_eager() const;
  /// Steps are repeated, and nobody watches them.
  bool is_recorded() const { return graph_ != nullptr && !is_watched_; }
  /// Why steps are not recorded on this GPU ("" when they are or will be): for a person.
  const std::string& remark() const { return remark_; }

 private:
  void record(double learning_rate, const std::function<StepTimes()>& step);
  /// Why a step cannot be recorded; "" when nothing is known to be in the way.
  std::string obstacle() const;
  /// Tells the device what the update in the recorded step is to use.
  void prepare_update(double learning_rate);

  Engine& engine_;
  bool enabled_;
  std::string remark_;
  std::unique_ptr<StepGraph> graph_;
  bool is_watched_ = false;  // for a trace or a profile, it says when the device comes where
  int plan_ = 0;             // Engine::plans_adopted_ that it belongs to
  int eager_steps_ = 0;      // under that plan
};

}  // namespace tutti
