#include "tutti/captured_step.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "base/trace.h"
#include "engine/executor.h"
#include "engine/flat_space.h"
#include "engine/parameter_update.h"
#include "engine/step_graph.h"

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
  if (enabled_ && engine.executor_ != nullptr)
    remark_ = "steps are queued kernel by kernel: the host starts the transfers between ranks";
  else if (enabled_ && !engine.update_->can_be_recorded())
    remark_ = "steps are queued kernel by kernel: this optimizer asks the host";
}

CapturedStep::~CapturedStep() = default;

bool CapturedStep::is_next_eager() const {
  if (!enabled_ || !remark_.empty() || engine_.is_next_step_watched()) return true;
  return engine_.plans_adopted_ != plan_ || (!graph_ && eager_steps_ < kEagerSteps);
}

StepTimes CapturedStep::run(double learning_rate, const std::function<StepTimes()>& step) {
  if (is_next_eager()) {
    if (engine_.plans_adopted_ != plan_) {  // parameters have moved
      graph_.reset();
      plan_ = engine_.plans_adopted_;
      eager_steps_ = 0;
    }
    ++eager_steps_;
    return step();
  }
  if (!graph_ && !record(learning_rate, step)) return step();
  engine_.update_->prepare(engine_.steps_done_ + 1, learning_rate);
  graph_->replay();
  ++engine_.steps_done_;
  return {};
}

bool CapturedStep::record(double learning_rate, const std::function<StepTimes()>& step) {
  const int64_t steps_done = engine_.steps_done_;
  engine_.update_->prepare(steps_done + 1, learning_rate);
  try {
    graph_ = record_graph([&] { step(); });
  } catch (const std::exception& error) {
    const std::string text = error.what();
    remark_ = fmt::format("steps are queued kernel by kernel, because one could not be recorded: {}",
                          text.substr(0, text.find('\n')));
  }
  engine_.forget_step(steps_done);  // nothing of it has run
  return graph_ != nullptr;
}

}  // namespace tutti
