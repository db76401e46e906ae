// Backward passes and updates that the engine's caller runs itself, as Python programs do.
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <utility>

#include "base/trace.h"
#include "engine/flat_space.h"
#include "engine/forward_watch.h"
#include "engine/optimizer_watch.h"
#include "engine/step_observer.h"
#include "tutti/engine.h"
#include "tutti/error.h"

namespace tutti {

void Engine::expect_backward(double weight, bool is_last, std::function<void()> when_done) {
  outer_.weight = weight;
  outer_.is_last = is_last;
  outer_.when_done = std::move(when_done);
}

void Engine::begin_forward() {
  if (outer_.is_open || outer_.is_over) return;
  if (TraceBuffer* const traced = recording()) traced->add(TraceKind::data_wait, idle_since_ns_);
  if (observer_ != nullptr) observer_->repeat_forward();
  watch_forward();
  ForwardWatch::tidy_up();
}

void Engine::watch_optimizer() {
  optimizer_watch_.reset();
  if (observer_ == nullptr && recording() == nullptr) return;
  optimizer_watch_ = std::make_unique<OptimizerWatch>([this](int64_t begin_ns, int64_t end_ns) {
    ++outer_updates_;
    outer_update_s_ += static_cast<double>(end_ns - begin_ns) * 1e-9;
    if (TraceBuffer* const traced = recording())
      traced->add({TraceKind::update, -1, traced->step(), begin_ns, end_ns, 0, 0});
    idle_since_ns_ = end_ns;
  });
}

void Engine::begin_outer_backward() {
  if (outer_.is_open) return;
  if (outer_.is_over)
    throw Error(
        "a second backward pass before the optimizer's step: the gradients of the first are on their way already.\n"
        "Run all passes of a step but the last under `no_sync()`; checkpoint activations with use_reentrant=False.");
  outer_.is_open = true;
  std::fill(outer_.seen.begin(), outer_.seen.end(), 0);
  is_last_micro_batch_ = outer_.is_last;
  torch::autograd::Engine::get_default_engine().queue_callback([this] {
    const InsideBackward inside;
    end_outer_backward();
  });
  start_backward();
}

void Engine::take_outer_gradient(std::size_t parameter, torch::Tensor& gradient) {
  if (std::exchange(outer_.seen[parameter], 1) != 0)
    throw Error(
        "backward brought the gradient of parameter '{}' twice in one pass.\n"
        "Checkpoint activations with use_reentrant=False.",
        space_->parameters()[parameter].name);
  if (leaves_gradients() || copies_at_the_end()) return;  // scaled there, if at all
  const torch::NoGradGuard no_grad;
  torch::Tensor place = space_->gradient(parameter);
  const double scale = is_last_micro_batch_ ? outer_.weight : 1;
  if (!gradient.is_same(place)) {
    if (scale == 1)
      place.copy_(gradient);
    else
      at::mul_out(place, gradient, torch::scalar_tensor(scale, gradient.options()));
    gradient = place;
  } else if (scale != 1) {
    place.mul_(scale);
  }
  outer_.scaled[parameter] = is_last_micro_batch_ ? 1 : 0;
}

/// Whether gradients stay where the caller's backward puts them: where nobody else wants them.
bool Engine::leaves_gradients() const { return !executor_ && !options_.updates_parameters && outer_.weight == 1; }

void Engine::end_outer_backward() {
  outer_.is_open = false;
  end_backward();
  idle_since_ns_ = trace_now();
  outer_.is_over = is_last_micro_batch_;
  // What is on its way is nobody's to read or to clip.
  if (outer_.is_over && options_.updates_parameters && !copies_at_the_end())
    for (const FlatParameter& parameter : space_->parameters()) parameter.tensor.mutable_grad().reset();
  if (outer_.when_done) outer_.when_done();
}

/// What is left to do for gradients that the step's last pass did not bring: those of its earlier passes, and, where
/// the caller updates, of earlier steps. These are sums already, and equal on all ranks.
void Engine::complete_outer_gradients() {
  const torch::NoGradGuard no_grad;
  const auto& parameters = space_->parameters();
  for (std::size_t i = 0; i < written_.size(); ++i) {
    torch::Tensor place = space_->gradient(i);
    if (!written_[i] && !options_.updates_parameters && parameters[i].tensor.grad().defined()) {
      if (!parameters[i].tensor.grad().is_same(place)) place.copy_(parameters[i].tensor.grad());
      parameters[i].tensor.mutable_grad() = place;
      written_[i] = 1;
      if (comm_.size() > 1) place.mul_(1.0 / comm_.size());
    } else if (written_[i] && outer_.is_over && !outer_.scaled[i] && outer_.weight != 1) {
      place.mul_(outer_.weight);
    }
  }
}

}  // namespace tutti
