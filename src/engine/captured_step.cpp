#include "tutti/captured_step.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "base/trace.h"
#include "engine/executor.h"
#include "engine/flat_space.h"
#include "engine/parameter_update.h"
#include "engine/step_graph.h"
#include "engine/stream_executor.h"

namespace tutti {
namespace {

// Libraries choose kernels and take memory in the first, and autograd's threads have theirs by the third.
constexpr int kEagerSteps = 3;

}  // namespace

ComputeStream::ComputeStream(torch::Device device) {
  if (!device.is_cuda()) return;
  const c10::impl::VirtualGuardImpl gpu(device.type());
  const torch::Device exact(device.type(), device.has_index() ? device.index() : gpu.getDevice().index());
  guard_.reset_stream(gpu.getStreamFromGlobalPool(exact));
}

CapturedStep::CapturedStep(Engine& engine, bool enabled)
    : engine_(engine), enabled_(enabled && engine.space().values().is_cuda()), plan_(engine.plans_adopted_) {
  if (enabled_ && !engine.update_->can_be_recorded())
    remark_ = "steps are queued kernel by kernel: this optimizer asks the host";
  engine_.may_be_recorded_ = enabled_ && remark_.empty();
}

CapturedStep::~CapturedStep() { engine_.may_be_recorded_ = false; }

bool CapturedStep::is_next_eager() const {
  if (!enabled_ || !remark_.empty() || engine_.is_next_step_watched()) return true;
  if (engine_.plans_adopted_ != plan_ || eager_steps_ < kEagerSteps) return true;
  // One whose transfers are queued begins with the tail of the one before, if that has not run yet: a checkpoint, for
  // example, has waited for it.
  return engine_.comm_.device_stream() != nullptr && engine_.crosses_steps() &&
         (engine_.streams_ == nullptr || !engine_.streams_->has_tail());
}

StepTimes CapturedStep::run(double learning_rate, const std::function<StepTimes()>& step,
                            const std::function<void()>& inputs) {
  if (engine_.plans_adopted_ != plan_) {  // parameters have moved
    graph_.reset();
    plan_ = engine_.plans_adopted_;
    eager_steps_ = 0;
  }
  // The last eager step runs its transfers as the recorded one will: afterwards the ranks are connected.
  if (enabled_ && remark_.empty() && !engine_.is_next_step_watched() && eager_steps_ + 1 >= kEagerSteps)
    engine_.queue_transfers();
  if (is_next_eager()) {
    ++eager_steps_;
    return step();
  }
  const bool is_traced = engine_.traces_repetition(), is_watched = is_traced || engine_.observer_ != nullptr;
  if (graph_ && is_watched != is_watched_) graph_.reset();
  if (graph_ && is_traced) engine_.begin_traced_repetition();
  if (inputs) inputs();
  if (!graph_) {
    record(learning_rate, step);
    is_watched_ = is_watched;
    if (!graph_ || engine_.executor_ != nullptr) return step();  // ranks have talked: what was under way has run
    if (is_traced) engine_.begin_traced_repetition();
  }
  prepare_update(learning_rate);
  graph_->replay();
  if (engine_.executor_ == nullptr) graph_->keep_pace();  // other ranks keep it, and may die
  return engine_.repeat_step(learning_rate);
}

void CapturedStep::prepare_update(double learning_rate) {
  if (engine_.crosses_steps())  // the update of the step before is the first thing in it
    engine_.update_->prepare(engine_.steps_done_, engine_.update_->learning_rates()[0]);
  else
    engine_.update_->prepare(engine_.steps_done_ + 1, learning_rate);
}

std::string CapturedStep::obstacle() const {
  if (engine_.executor_ == nullptr) return {};
  if (engine_.update_->has_new_parameters())
    return "some parameters have never had a gradient, and ranks ask each other about them";
  if (engine_.plan().servers > 0) return "the host talks to parameter servers";
  if (engine_.streams_ == nullptr && engine_.crosses_steps())
    return fmt::format("under {} the host carries transfers during forward", engine_.plan().strategy);
  return {};
}

void CapturedStep::record(double learning_rate, const std::function<StepTimes()>& step) {
  std::string problem = obstacle();
  if (problem.empty()) {
    prepare_update(learning_rate);
    try {
      engine_.record_step([&] { graph_ = record_graph([&] { step(); }); });
    } catch (const std::exception& error) {
      const std::string text = error.what();
      problem = "one could not be recorded: " + text.substr(0, text.find('\n'));
    }
  }
  if (engine_.executor_ != nullptr) {
    // All ranks repeat steps, or none does: their transfers would not meet.
    engine_.drain();
    int64_t problems = problem.empty() ? 0 : 1;
    engine_.comm_.all_reduce_sum({&problems, 1, DataType::i64})->wait();
    if (problems > 0 && problem.empty()) problem = "one could not be recorded on another rank";
  }
  if (problem.empty()) return;
  graph_.reset();
  remark_ = "steps are queued kernel by kernel: " + problem;
  engine_.may_be_recorded_ = false;
  if (engine_.streams_ != nullptr) engine_.carry_by_host();
}

}  // namespace tutti
