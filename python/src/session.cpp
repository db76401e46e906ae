#include "session.h"

#include <tutti/error.h>

#include <atomic>
#include <utility>

#include "engine/flat_space.h"

namespace tutti::python {
namespace {

std::atomic<bool> peer_failed{false};

}  // namespace

bool has_peer_failed() { return peer_failed; }

TuneOptions Session::with_parts(TuneOptions options, Job& job) {
  options.trace = log_.trace();
  options.step_opens = [this] { step_opens(); };
  const bool is_auto = options.strategy == kAutoStrategy;
  if (!is_auto && job.size() > 1 && find_strategy(options.strategy).uses_servers)
    options.servers = &job.parameter_servers();
  return options;
}

Session::Session(Job& job, Meeting& meeting, const TrainedTensors& tensors, const SessionOptions& options)
    : comm_(job.communicator()),
      meeting_(meeting),
      options_(options),
      log_(comm_, options.run),
      engine_(tensors, comm_, with_parts(options.tune, job)) {
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

void Session::step_opens() {
  // Another model's parameters may be on their way still, and the communicator is one thread's at a time.
  meeting_.take_turn(options_.number, [this] { engine_.drain(); });
  if (!std::exchange(takes_part_, false)) meeting_.step_begins(options_.number, rates_);
}

void Session::begin_forward(int64_t samples, const std::vector<double>& rates) {
  rates_ = rates;
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
  if (ends_step && !options_.tune.updates_parameters) finish_step({});
  if (!ends_step) expect();
} catch (const CommFailed&) {
  peer_failed = true;
  throw;
}

void Session::finish_step(const std::vector<double>& rates) {
  const double learning_rate = rates.empty() ? 0 : rates[0];
  const StepTimes times = engine_.finish_step(rates.empty() ? std::vector<double>{0.0} : rates);
  passes_done_ = 0;
  meeting_.step_ends(rates, is_scaled_);
  expect();
  const bool is_free = engine_.plan().barrier == Barrier::optimizer_step;
  if (options_.share_buffers && is_free) engine().share_buffers();
  if (steps() == 1) log_.add_config({{"batch", batch_}, {"lr", learning_rate}});
  log_.step_done(engine_, times, std::exchange(samples_, 0));
  engine_.begin_step();
}

bool Session::finish_scaled_step(const std::vector<double>& rates, double inverse_scale) {
  engine().scale_gradients(inverse_scale);
  is_scaled_ = true;
  finish_step(rates);
  is_scaled_ = false;
  return engine().was_left_out();
}

void Session::take_part(const std::vector<double>& rates) {
  // Where the caller updates, what its gradients were is over: the others have forgotten theirs.
  const auto forget = [this] {
    if (options_.tune.updates_parameters) return;
    for (const FlatParameter& parameter : engine().space().parameters()) parameter.tensor.mutable_grad().reset();
  };
  takes_part_ = true;
  forget();
  finish_step(rates);
  forget();
}

void Session::take_values(int root) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor values = engine().space().values();
  const torch::Tensor host = values.to(torch::kCPU);
  comm_.broadcast({host.data_ptr<float>(), static_cast<std::size_t>(host.numel()), DataType::f32}, root)->wait();
  if (comm_.rank() != root && !host.is_same(values)) values.copy_(host);
}

void Session::set_options(std::size_t group, const OptimizerOptions& options) { engine().set_options(group, options); }

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
