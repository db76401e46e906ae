#include "tutti/engine.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/torch_compat.h"
#include "base/trace.h"
#include "comm/ps/push_pull.h"
#include "engine/device_link.h"
#include "engine/flat_space.h"
#include "engine/forward_watch.h"
#include "engine/gradient_hooks.h"
#include "engine/host_executor.h"
#include "engine/issue_log.h"
#include "engine/optimizer_watch.h"
#include "engine/parameter_update.h"
#include "engine/repeated_trace.h"
#include "engine/step_observer.h"
#include "engine/stream_executor.h"
#include "engine/wire.h"
#include "plan/adapt.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {

namespace {

std::vector<OptimizerOptions> groups_of(const EngineOptions& options) {
  std::vector<OptimizerOptions> groups = {options.optimizer};
  groups.insert(groups.end(), options.more_groups.begin(), options.more_groups.end());
  return groups;
}

}  // namespace

TrainedTensors tensors_of(const torch::nn::Module& module) {
  TrainedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.parameters.push_back({item.key(), item.value()});
  for (const auto& item : module.named_buffers()) tensors.buffers.push_back({item.key(), item.value()});
  return tensors;
}

Engine::Engine(const torch::nn::Module& module, Communicator& comm, const EngineOptions& options)
    : Engine(tensors_of(module), comm, options) {}

Engine::Engine(const TrainedTensors& tensors, Communicator& comm, const EngineOptions& options)
    : comm_(comm),
      options_(options),
      buffers_(tensors.buffers),
      space_(std::make_unique<FlatSpace>(tensors.parameters, comm)),
      update_(std::make_unique<ParameterUpdate>(groups_of(options), options.clip_norm, *space_, comm)),
      link_(make_device_link(*space_, comm)),
      wire_(std::make_unique<Wire>(comm.size() > 1 ? options.wire : "fp32", space_->elements(), options.topk_ratio,
                                   comm)),
      log_(std::make_unique<IssueLog>()),
      plan_(make_bsp_plan(space_->unmeasured_profile(), {}, comm.size(), {})),
      written_(space_->parameters().size(), 0),
      hooks_(std::make_unique<GradientHooks>(space_->parameters(),
                                             [this](std::size_t parameter) { on_gradient(parameter); })) {
  wire_->lay_out(plan_.slots);
  outer_.seen = outer_.scaled = written_;
  if (!options_.updates_parameters)
    for (const FlatParameter& parameter : space_->parameters()) parameter.tensor.mutable_grad().reset();
  if (comm.size() == 1) return;
  broadcast({space_->values()});
  share_buffers();
  carry_by_host();
}

Engine::~Engine() = default;

void Engine::broadcast(const std::vector<torch::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> on_host;
  std::size_t bytes = 0;
  for (const torch::Tensor& tensor : tensors) {
    on_host.push_back(tensor.detach().to(torch::kCPU).contiguous());
    bytes += static_cast<std::size_t>(on_host.back().nbytes());
  }
  if (bytes == 0) return;
  // All in one message, as 8-byte words, whatever the types.
  std::vector<int64_t> words((bytes + 7) / 8);
  const auto for_each = [&](const auto& copy) {
    char* at = reinterpret_cast<char*>(words.data());
    for (const torch::Tensor& host : on_host) {
      if (host.numel() == 0) continue;
      copy(at, host);
      at += host.nbytes();
    }
  };
  for_each([](char* at, const torch::Tensor& host) { std::memcpy(at, host.data_ptr(), host.nbytes()); });
  comm_.broadcast({words.data(), words.size(), DataType::i64}, 0)->wait();
  if (comm_.rank() == 0) return;
  for_each([](const char* at, const torch::Tensor& host) { std::memcpy(host.data_ptr(), at, host.nbytes()); });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].is_same(on_host[i])) tensors[i].detach().copy_(on_host[i]);
}

void Engine::share_buffers() {
  if (comm_.size() == 1) return;
  std::vector<torch::Tensor> tensors;
  for (const NamedTensor& buffer : buffers_) tensors.push_back(buffer.tensor);
  broadcast(tensors);
}

TraceBuffer* Engine::recording() const {
  return options_.trace != nullptr && !is_recording_ ? options_.trace->compute() : nullptr;
}

void Engine::observe(StepObserver* observer) { observer_ = observer; }

template <typename Function>
void Engine::tell(Function about) {
  if (observer_ != nullptr) about(*observer_);
  if (is_recording_ && repeated_trace_) about(*repeated_trace_);
}

int64_t Engine::parameter_elements() const {
  int64_t elements = 0;
  for (const FlatParameter& parameter : space_->parameters()) elements += parameter.tensor.numel();
  return elements;
}

void Engine::begin_step() {
  if (streams_ != nullptr && is_next_step_watched()) {  // the host's thread knows when transfers begin and end
    drain();
    carry_by_host();
  }
  if (options_.trace != nullptr && !is_recording_) {
    if (traces_repetition())
      options_.trace->leave_out(steps_done_);
    else
      options_.trace->begin_step(steps_done_);
  }
  std::fill(written_.begin(), written_.end(), 0);
  std::fill(outer_.scaled.begin(), outer_.scaled.end(), 0);
  outer_.is_over = false;
  idle_since_ns_ = trace_now();
  // Backward then hands each gradient over instead of adding it to what is there; on_gradient puts it in its place.
  if (options_.updates_parameters)
    for (const FlatParameter& parameter : space_->parameters()) parameter.tensor.mutable_grad().reset();
  else
    watch_optimizer();
  tell([](StepObserver& observer) { observer.begin_forward(); });
  if (crosses_steps()) {
    for (const std::size_t parameter : unwatched_) wait_for_parameter(parameter);
    // An observer looks at forward by itself, and only one can: then nothing else waits for these.
    if (observer_ != nullptr) drain();
  }
  watch_forward();
  ForwardWatch::tidy_up();
}

void Engine::watch_forward() {
  const bool waits = crosses_steps() && !is_step_open_;
  if (recording() != nullptr) forward_begin_ns_ = trace_now();
  if (observer_ != nullptr || (!waits && recording() == nullptr && !(is_recording_ && repeated_trace_))) return;
  gate_ = std::make_unique<ForwardWatch>(space_->parameters(), [this, waits](std::size_t parameter) {
    if (TraceBuffer* const traced = recording())
      traced->add(TraceKind::first_use, trace_now(), static_cast<int>(parameter));
    if (waits) wait_for_parameter(parameter);
    if (is_recording_ && repeated_trace_) repeated_trace_->first_use(parameter);
  });
}

void Engine::wait_for_parameter(std::size_t parameter) {
  waited_s_ += executor_->wait_for_slot(space_->slot_of(parameter));
}

void Engine::open_step() {
  gate_.reset();
  if (is_step_open_) return;
  is_step_open_ = true;
  if (!executor_ || is_recorded_for_host()) return;
  // The step before, where it is still under way, keeps the gradients' places until it is through.
  waited_s_ += executor_->wait_for_step();
  busy_before_s_ = executor_->busy_s();  // begin_step counts from 0 again
  if (options_.step_opens) options_.step_opens();
  executor_->begin_step(steps_done_);
}

void Engine::start_backward() {
  if (TraceBuffer* const traced = recording()) {
    // Forward began when the loader had handed its batch over.
    for (auto event = traced->events().rbegin(); event != traced->events().rend(); ++event) {
      if (event->end_ns <= forward_begin_ns_) break;
      if (event->kind == TraceKind::data_wait) forward_begin_ns_ = event->end_ns;
    }
    traced->add(TraceKind::forward, forward_begin_ns_);
    backward_begin_ns_ = trace_now();
  }
  open_step();
  tell([&](StepObserver& observer) {
    if (is_last_micro_batch_)
      observer.begin_backward();
    else
      observer.begin_earlier_backward();
  });
}

void Engine::end_backward() {
  if (TraceBuffer* const traced = recording()) traced->add(TraceKind::backward, backward_begin_ns_);
  tell([&](StepObserver& observer) {
    if (is_last_micro_batch_)
      observer.end_backward();
    else
      observer.repeat_forward();
  });
}

void Engine::backward(const torch::Tensor& loss, double weight, bool is_last) {
  is_last_micro_batch_ = is_last;
  start_backward();
  is_own_backward_ = true;
  try {
    loss.backward(torch::full_like(loss, weight));
  } catch (...) {
    is_own_backward_ = false;
    throw;
  }
  is_own_backward_ = false;
  end_backward();
  if (!is_last) watch_forward();
}

void Engine::on_gradient(std::size_t parameter) {
  torch::Tensor& gradient = space_->parameters()[parameter].tensor.mutable_grad();
  if (!gradient.defined()) return;  // backward reached the parameter and had nothing for it
  if (gradient.is_sparse())
    throw Error("parameter '{}' has a sparse gradient; use dense ones (for an embedding: sparse = false)",
                space_->parameters()[parameter].name);
  if (!is_own_backward_) {
    const InsideBackward inside;
    begin_outer_backward();
    take_outer_gradient(parameter, gradient);
  } else if (!written_[parameter] && !copies_at_the_end()) {
    const torch::NoGradGuard no_grad;
    space_->gradient(parameter).copy_(gradient);
    gradient = space_->gradient(parameter);
  }
  written_[parameter] = 1;
  // Backward may run on a thread of its own; the one that computes waits for it meanwhile, so there is still one
  // writer.
  if (TraceBuffer* const traced = recording())
    traced->add(TraceKind::gradient, trace_now(), static_cast<int>(parameter));
  if (!is_last_micro_batch_) return;
  tell([&](StepObserver& observer) { observer.gradient_ready(parameter); });
  if (!executor_ || copies_at_the_end()) return;
  const std::size_t slot = space_->slot_of(parameter);
  if (is_recorded_for_host()) {
    link_->gradient_queued(slot);
    recorded_slots_.push_back(slot);
  } else {
    executor_->gradient_ready(slot);
  }
}

/// Whether gradients come to their places all at once, after backward: on a GPU, where each copy is a kernel, and
/// nobody waits for one of them.
bool Engine::copies_at_the_end() const {
  return space_->gradients().is_cuda() &&
         std::all_of(plan_.transfers.begin(), plan_.transfers.end(),
                     [](const Transfer& transfer) { return transfer.starts == StartsWhen::backward_done; });
}

void Engine::copy_gradients() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> places, gradients;
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (!written_[i] || space_->parameters()[i].tensor.grad().is_same(space_->gradient(i))) continue;
    places.push_back(space_->gradient(i));
    gradients.push_back(std::exchange(space_->parameters()[i].tensor.mutable_grad(), places.back()));
  }
  if (!places.empty()) copy_all(places, gradients);
}

StepTimes Engine::finish_step(double learning_rate) { return finish_step(std::vector<double>{learning_rate}); }

StepTimes Engine::finish_step(const std::vector<double>& learning_rates) {
  open_step();  // a rank without samples has not yet
  if (copies_at_the_end() && !leaves_gradients()) copy_gradients();
  complete_outer_gradients();
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i]) continue;
    space_->gradient(i).zero_();
    space_->parameters()[i].tensor.mutable_grad() = space_->gradient(i);
  }
  update_->begin(++steps_done_, learning_rates);
  is_step_open_ = false;
  if (is_recorded_for_host()) {
    link_->backward_queued();
    return {};
  }
  const StepTimes times = complete_step();
  if (observer_ != nullptr) observer_->end_step(times.comm_exposed_s, std::exchange(outer_update_s_, 0));
  return times;
}

StepTimes Engine::complete_step() {
  StepTimes times;
  if (executor_) {
    times.comm_busy_s = crosses_steps() ? busy_before_s_ : 0;
    executor_->backward_done();
    if (!crosses_steps()) {
      {
        const TraceSpan span(recording(), TraceKind::device_wait);
        executor_->wait_for_backward();
      }
      waited_s_ += executor_->wait_for_step();
      times.comm_busy_s = executor_->busy_s();
    }
  }
  if (!options_.updates_parameters) {
    update_->agree_on_new_parameters(written_);
    // One that has never had a gradient has none, for the caller's optimizer to leave it alone.
    for (std::size_t i = 0; i < written_.size(); ++i)
      if (update_->first_updates()[i] == 0) space_->parameters()[i].tensor.mutable_grad().reset();
  } else if (!crosses_steps()) {
    update_->agree_on_new_parameters(written_);
    const TraceSpan span(recording(), TraceKind::update);
    tell([](StepObserver& observer) { observer.begin_update(); });
    was_left_out_ = !update_->update_all(std::exchange(inverse_scale_, {}));
    tell([](StepObserver& observer) { observer.end_update(); });
  }
  times.comm_exposed_s = std::exchange(waited_s_, 0);
  if (options_.trace != nullptr && !is_recording_) options_.trace->end_step();
  return times;
}

Plan Engine::adapted(Plan plan) const {
  adapt(plan, needs());
  return plan;
}

PlanNeeds Engine::needs() const {
  return {comm_.node_ranks(),
          options_.clip_norm > 0,
          update_->has_new_parameters(),
          find_optimizer(options_.optimizer.name).needs_whole_tensors,
          !options_.updates_parameters,
          scales_gradients_};
}

void Engine::adopt(const Plan& plan, const Profile& profile) {
  drain();
  executor_.reset();
  host_ = nullptr;
  streams_ = nullptr;
  update_->unite(plan_);
  ++plans_adopted_;
  plan_ = plan;
  remark_ = adapt(plan_, needs());
  check_plan(plan_);
  unwatched_.clear();
  std::vector<char> is_watched(space_->parameters().size(), 0);
  for (const GradientProfile& gradient : profile.gradients)
    is_watched[static_cast<std::size_t>(gradient.parameter)] = gradient.needed_s > 0 ? 1 : 0;
  for (std::size_t i = 0; i < is_watched.size(); ++i)
    if (!is_watched[i]) unwatched_.push_back(i);
  std::vector<torch::Tensor> state = update_->whole_state();
  for (const torch::Tensor& buffer : wire_->state()) state.push_back(buffer);
  space_->lay_out(plan_.slots, state);
  wire_->lay_out(plan_.slots);
  if (comm_.size() == 1) return;
  if (plan_.servers > 0) announce_messages();
  if (plan_.sharded_optimizer) update_->shard(plan_);
  carry_by_host();
}

void Engine::announce_messages() {
  std::vector<PushPullMessage> messages;
  for (const Transfer& transfer : plan_.transfers)
    messages.push_back({static_cast<std::size_t>(transfer.elements()), transfer.server});
  options_.servers->announce(wire_->type(), messages);
}

void Engine::drain() {
  gate_.reset();
  if (!executor_) return;
  waited_s_ += executor_->wait_for_step();
}

void Engine::settle() {
  drain();
  if (comm_.size() == 1) return;
  log_->compare(comm_);
  share_buffers();
}

std::optional<double> Engine::gradient_norm() const {
  if (steps_done_ == 0 || crosses_steps() || plan_.sharded_optimizer || leaves_gradients()) return std::nullopt;
  return update_->gradient_norm().item<double>();
}

void Engine::set_options(std::size_t group, const OptimizerOptions& options) {
  if (!is_step_open_) drain();  // an open one has waited for the updates of the step before
  update_->set_options(group, options);
}

void Engine::scale_gradients(double inverse_scale) {
  scales_gradients_ = true;
  if (crosses_steps())
    throw UsageError(
        "strategy '{}' has updated parameters before all gradients have come, so a step cannot be left out any more.\n"
        "Scale gradients from the first step on, or take another strategy, as buckets.",
        plan_.strategy);
  inverse_scale_ = inverse_scale;
}

int64_t Engine::optimizer_state_bytes() const { return update_->state_bytes(); }

std::vector<std::pair<std::string, torch::Tensor>> Engine::optimizer_state() { return update_->named_state(plan_); }

const std::vector<int64_t>& Engine::first_updates() const { return update_->first_updates(); }

void Engine::restore(int64_t steps_done, std::vector<int64_t> first_updates,
                     const std::function<torch::Tensor(const std::string&)>& find) {
  update_->restore(std::move(first_updates), find);
  steps_done_ = steps_done;
}

std::vector<std::vector<std::pair<std::string, torch::Tensor>>> Engine::left_out() {
  const torch::NoGradGuard no_grad;
  std::vector<std::vector<std::pair<std::string, torch::Tensor>>> ranks;
  for (const torch::Tensor& mine : wire_->state()) {
    for (int rank = 0; rank < comm_.size(); ++rank) {
      torch::Tensor flat = mine.clone();
      comm_.broadcast({flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel()), DataType::f32}, rank)->wait();
      if (comm_.rank() != 0) continue;
      auto& tensors = ranks.emplace_back();
      for (std::size_t i = 0; i < space_->parameters().size(); ++i)
        tensors.emplace_back(space_->parameters()[i].name, space_->view(flat, i).contiguous());
    }
  }
  return ranks;
}

void Engine::restore_left_out(const std::function<torch::Tensor(const std::string&)>& find) {
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& flat : wire_->state())
    for (std::size_t i = 0; i < space_->parameters().size(); ++i)
      space_->view(flat, i).copy_(find(space_->parameters()[i].name));
}

}  // namespace tutti
