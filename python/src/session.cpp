#include "session.h"

#include <tutti/error.h>

#include <atomic>
#include <utility>

#include "engine/flat_space.h"

namespace tutti::python {
namespace {

std::atomic<bool> peer_failed{false};

TuneOptions with_parts(TuneOptions options, Job& job, RunLog& log) {
  options.trace = log.trace();
  const bool is_auto = options.strategy == kAutoStrategy;
  if (!is_auto && job.size() > 1 && find_strategy(options.strategy).uses_servers)
    options.servers = &job.parameter_servers();
  return options;
}

}  // namespace

bool has_peer_failed() { return peer_failed; }

Session::Session(Job& job, const TrainedTensors& tensors, const SessionOptions& options)
    : comm_(job.communicator()),
      options_(options),
      log_(comm_, options.run),
      engine_(tensors, comm_, with_parts(options.tune, job, log_)) {
  expect();
  engine_.begin_step();
}

void Session::expect() {
  const bool is_last = synchronizes_ && passes_done_ + 1 >= passes_;
  engine_.expect_backward(1.0 / comm_.size(), is_last, [this] { pass_done(); });
}

void Session::synchronize(bool on) {
  synchronizes_ = on;
  expect();
}

void Session::set_passes(int64_t passes) {
  passes_ = passes;
  expect();
}

void Session::begin_forward(int64_t samples) {
  if (engine().is_backward_broken())
    throw Error("the backward pass before this forward ended in the middle, so gradients are missing: start again");
  check_places();
  samples_ += samples;
  if (batch_ == 0) batch_ = samples;
  engine_.begin_forward();
}

void Session::pass_done() try {
  ++passes_done_;
  const bool ends_step = synchronizes_ && passes_done_ >= passes_;
  if (ends_step && !options_.tune.updates_parameters) finish_step(0);
  if (!ends_step) expect();
} catch (const CommFailed&) {
  peer_failed = true;
  throw;
}

void Session::finish_step(double learning_rate) {
  const StepTimes times = engine_.finish_step(learning_rate);
  passes_done_ = 0;
  expect();
  const bool is_free = engine_.plan().barrier == Barrier::optimizer_step;
  if (options_.share_buffers && is_free) engine().share_buffers();
  if (steps() == 1) log_.add_config({{"batch", batch_}, {"lr", learning_rate}});
  log_.step_done(engine_, times, std::exchange(samples_, 0));
  engine_.begin_step();
}

void Session::drain() {
  if (engine().is_last_backward_begun())
    throw Error(
        "between backward() and the optimizer's step() gradients are on their way: call this before or after both");
  // Passes that are added up for a later one have sent nothing yet.
  if (!engine().is_step_open()) engine_.drain();
}

void Session::settle() {
  drain();
  if (!engine().is_step_open()) engine_.settle();
}

void Session::finish() {
  settle();
  if (!engine().is_step_open()) log_.finish(engine_);
}

void Session::check_places() const {
  const FlatSpace& space = engine_.engine().space();
  const torch::Tensor values = space.values();
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const FlatParameter& parameter = space.parameters()[i];
    const char* const place =
        static_cast<const char*>(values.data_ptr()) + space.slots()[space.slot_of(i)].begin * sizeof(float);
    if (parameter.tensor.numel() > 0 && parameter.tensor.data_ptr() != place)
      throw Error(
          "parameter '{}' has other memory than when the model was given to Tutti.\n"
          "Move, cast or replace parameters (model.to(), half(), load_state_dict(assign=True), …) before that.",
          parameter.name);
  }
}

}  // namespace tutti::python
