// The engine's side of steps that a GPU repeats: what CapturedStep asks of it.
#include <functional>
#include <memory>
#include <utility>

#include "base/trace.h"
#include "engine/executor.h"
#include "engine/flat_space.h"
#include "engine/forward_watch.h"
#include "engine/host_executor.h"
#include "engine/parameter_update.h"
#include "engine/repeated_trace.h"
#include "engine/step_observer.h"
#include "engine/stream_executor.h"
#include "tutti/engine.h"

namespace tutti {
namespace {

// Steps that run kernel by kernel before a traced one is repeated. Where every batch is smaller than the full one, none
// ever is: then they are traced as the host runs them.
constexpr int64_t kMostLeftOut = 20;

}  // namespace

bool Engine::is_next_step_watched() const {
  return (observer_ != nullptr && !observer_->wants_repeated()) || !is_recording_allowed_ ||
         (options_.trace != nullptr && options_.trace->includes(steps_done_) && !traces_repetition());
}

bool Engine::traces_repetition() const {
  return options_.trace != nullptr && options_.trace->includes(steps_done_) && may_be_recorded_ &&
         options_.trace->left_out() < kMostLeftOut && (host_ == nullptr || comm_.device_stream() != nullptr);
}

void Engine::begin_traced_repetition() { options_.trace->begin_step(steps_done_); }

void Engine::record_step(const std::function<void()>& record) {
  const int64_t steps_done = steps_done_;
  const std::vector<double> learning_rates = update_->learning_rates();
  const auto forget = [&] {
    gate_.reset();
    is_step_open_ = is_recording_ = false;
    steps_done_ = steps_done;
    update_->begin(steps_done, learning_rates);  // that of the step before may still be due
    if (streams_ != nullptr) streams_->end_recording();
  };
  is_recording_ = true;
  recorded_slots_.clear();
  repeated_trace_.reset();
  if (traces_repetition())
    repeated_trace_ = std::make_unique<RepeatedTrace>(*options_.trace, plan_, space_->values().device());
  if (streams_ != nullptr) streams_->begin_recording(repeated_trace_.get());
  if (observer_ != nullptr) observer_->begin_recording();
  try {
    record();
  } catch (...) {
    forget();
    if (observer_ != nullptr) observer_->end_recording(false);
    throw;
  }
  forget();
  if (observer_ != nullptr) observer_->end_recording(true);
}

StepTimes Engine::repeat_step(double learning_rate) {
  update_->begin(++steps_done_, {learning_rate});
  if (streams_ != nullptr) streams_->step_repeated(steps_done_);
  StepTimes times;
  if (host_ != nullptr) {
    waited_s_ += host_->wait_for_step();
    host_->begin_repeated_step(steps_done_ - 1, recorded_slots_);
    host_->wait_for_backward();  // transfers start by each gradient's event, until backward counts as done
    times = complete_step();
  }
  if (observer_ != nullptr) observer_->step_repeated();
  if (repeated_trace_) {
    repeated_trace_->add_repetition(steps_done_ - 1);
    options_.trace->end_step();
  }
  return times;
}

void Engine::carry_by_host() {
  streams_ = nullptr;
  auto host = std::make_unique<HostExecutor>(
      plan_, comm_, options_.servers, *link_, *wire_, *log_,
      [this](const UpdatePiece& piece, TraceBuffer* recording) { update_->update_piece(plan_, piece, recording); },
      options_.trace);
  host_ = host.get();
  executor_ = std::move(host);
}

void Engine::queue_transfers() {
  if (streams_ != nullptr || executor_ == nullptr || comm_.device_stream() == nullptr) return;
  drain();
  host_ = nullptr;
  executor_.reset();
  auto streams = make_stream_executor(plan_, *comm_.recordable(), *link_, *wire_, [this](const UpdatePiece& piece) {
    update_->update_piece(plan_, piece, /*recording=*/nullptr);
  });
  streams_ = streams.get();
  executor_ = std::move(streams);
}

}  // namespace tutti
