#include "tutti/engine.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/torch_compat.h"
#include "tutti/error.h"

namespace tutti {

void check_wire(const EngineOptions& options) {
  if (options.strategy == kAutoStrategy) return;  // it tries only those that can
  if (is_compressed(options.wire) && !find_strategy(options.strategy).only_all_reduces)
    throw UsageError("wire format '{}' works with strategies that all-reduce, and '{}' does not: try buckets or mgwfbp",
                     options.wire, options.strategy);
}

Engine::Engine(torch::nn::Module& model, Communicator& comm, const EngineOptions& options)
    : model_(model),
      comm_(comm),
      options_(options),
      space_(model, comm),
      whole_{0, space_.elements(), make_optimizer(options.optimizer, space_.values())},
      link_(make_device_link(space_, comm)),
      wire_(comm.size() > 1 ? options.wire : "fp32", space_.elements(), options.topk_ratio, comm),
      plan_(make_bsp_plan(space_.unmeasured_profile(), {}, comm.size(), options.strategy_options)),
      written_(space_.parameters().size(), 0),
      first_update_(space_.parameters().size(), 0),
      hooks_(space_.parameters(), [this](std::size_t parameter) { on_gradient(parameter); }) {
  if (!is_auto() && comm.size() > 1 && find_strategy(options.strategy).uses_servers && options.servers == nullptr)
    throw UsageError("strategy '{}' needs parameter servers, and there are none", options.strategy);
  check_wire(options);
  wire_.lay_out(plan_.slots);
  if (comm.size() > 1) {
    broadcast(space_.values());
    for (const auto& buffer : model_.named_buffers()) broadcast(buffer.value());
    start_comm_thread();
  }
  if (profile_steps() > 0)
    profiler_.emplace(space_, *link_);
  else
    choose_plan();
}

Engine::~Engine() = default;

void Engine::broadcast(torch::Tensor tensor) {
  if (tensor.numel() == 0) return;
  const torch::NoGradGuard no_grad;
  torch::Tensor host = tensor.detach().to(torch::kCPU).contiguous();
  // As 8-byte words, whatever the type.
  const std::size_t bytes = static_cast<std::size_t>(host.nbytes());
  std::vector<int64_t> words((bytes + 7) / 8);
  std::memcpy(words.data(), host.data_ptr(), bytes);
  comm_.broadcast({words.data(), words.size(), DataType::i64}, 0)->wait();
  std::memcpy(host.data_ptr(), words.data(), bytes);
  tensor.detach().copy_(host);
}

void Engine::start_comm_thread() {
  comm_thread_ = std::make_unique<CommThread>(
      plan_, comm_, options_.servers, *link_, wire_, log_,
      [this](const UpdatePiece& piece, TraceBuffer* recording) { update_piece(piece, recording); },
      options_.comm_timeout, options_.trace);
}

void Engine::begin_step() {
  if (options_.trace != nullptr) options_.trace->begin_step(steps_done_);
  std::fill(written_.begin(), written_.end(), 0);
  // Backward then hands each gradient over instead of adding it to what is there; on_gradient puts it in its place.
  for (const FlatParameter& parameter : space_.parameters()) parameter.tensor.mutable_grad().reset();
  if (profiler_) profiler_->begin_forward();
  if (crosses_steps())
    for (const std::size_t parameter : unwatched_) wait_for_parameter(parameter);
  watch_forward();
}

void Engine::watch_forward() {
  const bool waits = crosses_steps() && !is_step_open_;
  if (recording() != nullptr) forward_begin_ns_ = trace_now();
  if (profiler_ || (!waits && recording() == nullptr)) return;
  gate_ = std::make_unique<ForwardWatch>(space_.parameters(), [this, waits](std::size_t parameter) {
    if (TraceBuffer* const traced = recording())
      traced->add(TraceKind::first_use, trace_now(), static_cast<int>(parameter));
    if (waits) wait_for_parameter(parameter);
  });
}

void Engine::wait_for_parameter(std::size_t parameter) {
  waited_s_ += comm_thread_->wait_for_slot(space_.slot_of(parameter));
  link_->join();
}

void Engine::open_step() {
  gate_.reset();
  if (is_step_open_) return;
  is_step_open_ = true;
  if (!comm_thread_) return;
  // The step before, where it is still under way, keeps the gradients' places until it is through.
  waited_s_ += comm_thread_->wait_for_step();
  link_->join();
  busy_before_s_ = comm_thread_->busy_s();  // begin_step counts from 0 again
  comm_thread_->begin_step(steps_done_);
}

void Engine::backward(const torch::Tensor& loss, double weight, bool is_last) {
  TraceBuffer* const traced = recording();
  if (traced != nullptr) {
    // Forward began when the loader had handed its batch over.
    for (auto event = traced->events().rbegin(); event != traced->events().rend(); ++event) {
      if (event->end_ns <= forward_begin_ns_) break;
      if (event->kind == TraceKind::data_wait) forward_begin_ns_ = event->end_ns;
    }
    traced->add(TraceKind::forward, forward_begin_ns_);
  }
  open_step();
  is_last_micro_batch_ = is_last;
  if (profiler_ && is_last) profiler_->begin_backward();
  {
    const TraceSpan span(traced, TraceKind::backward);
    loss.backward(torch::full_like(loss, weight));
  }
  if (profiler_ && is_last) profiler_->end_backward();
  if (profiler_ && !is_last) profiler_->repeat_forward();
  if (!is_last) watch_forward();
}

void Engine::on_gradient(std::size_t parameter) {
  torch::Tensor& gradient = space_.parameters()[parameter].tensor.mutable_grad();
  if (!gradient.defined()) return;  // backward reached the parameter and had nothing for it
  if (!written_[parameter]) {
    if (gradient.is_sparse())
      throw Error("parameter '{}' has a sparse gradient; use dense ones (for an embedding: sparse = false)",
                  space_.parameters()[parameter].name);
    if (!copies_at_the_end()) {
      const torch::NoGradGuard no_grad;
      space_.gradient(parameter).copy_(gradient);
      gradient = space_.gradient(parameter);
    }
    written_[parameter] = 1;
  }
  // Backward may run on a thread of its own; the one that computes waits for it meanwhile, so there is still one
  // writer.
  if (TraceBuffer* const traced = recording())
    traced->add(TraceKind::gradient, trace_now(), static_cast<int>(parameter));
  if (!is_last_micro_batch_) return;
  if (profiler_) profiler_->gradient_ready(parameter);
  if (!comm_thread_) return;
  const std::size_t slot = space_.slot_of(parameter);
  link_->gradient_queued(slot);
  comm_thread_->gradient_ready(slot);
}

void Engine::copy_gradients() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> places, gradients;
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (!written_[i]) continue;
    places.push_back(space_.gradient(i));
    gradients.push_back(std::exchange(space_.parameters()[i].tensor.mutable_grad(), places.back()));
  }
  if (!places.empty()) copy_all(places, gradients);
}

StepTimes Engine::finish_step(double learning_rate) {
  open_step();  // a rank without samples has not yet
  if (copies_at_the_end()) copy_gradients();
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i]) continue;
    space_.gradient(i).zero_();
    space_.parameters()[i].tensor.mutable_grad() = space_.gradient(i);
  }
  learning_rate_ = learning_rate;
  updating_step_ = ++steps_done_;
  is_step_open_ = false;
  StepTimes times;
  if (comm_thread_) {
    times.comm_busy_s = crosses_steps() ? busy_before_s_ : 0;
    link_->backward_queued();
    comm_thread_->backward_done();
    if (!crosses_steps()) {
      {
        const TraceSpan span(recording(), TraceKind::device_wait);
        link_->wait_for_backward();
      }
      waited_s_ += comm_thread_->wait_for_step();
      link_->join();
      times.comm_busy_s = comm_thread_->busy_s();
    }
  }
  double update_s = 0;
  if (!crosses_steps()) {
    agree_on_new_parameters();
    const TraceSpan span(recording(), TraceKind::update);
    const auto start = Clock::now();
    update_all();
    update_s = seconds_since(start);
  }
  times.comm_exposed_s = std::exchange(waited_s_, 0);
  if (options_.trace != nullptr) options_.trace->end_step();
  if (profiler_) profiler_->end_step(times.comm_exposed_s, update_s);
  if (profiler_ && profiler_->steps() >= profile_steps())
    choose_plan();
  else if (search_)
    search_on();
  return times;
}

void Engine::update_piece(const UpdatePiece& piece, TraceBuffer* recording) {
  if (!updates_parameters(plan_, plan_.transfers[piece.transfer])) return;
  const Share& share = plan_.sharded_optimizer ? *shares_[piece.transfer] : whole_;
  const int64_t begin = std::max(piece.begin, share.begin), end = std::min(piece.end, share.end);
  if (begin >= end) return;
  const TraceSpan span(recording, TraceKind::update, static_cast<int>(piece.transfer));
  update(share, begin, end, {});
}

void Engine::agree_on_new_parameters() {
  // Only while some parameter has never had a gradient: all ranks know that together, so all come here or none.
  if (std::all_of(first_update_.begin(), first_update_.end(), [](int64_t step) { return step > 0; })) return;
  std::vector<int64_t> has_gradient(written_.begin(), written_.end());
  comm_.all_reduce_sum({has_gradient.data(), has_gradient.size(), DataType::i64})->wait();
  for (std::size_t i = 0; i < has_gradient.size(); ++i)
    if (first_update_[i] == 0 && has_gradient[i] > 0) first_update_[i] = updating_step_;
}

torch::Tensor Engine::clip_factor() const {
  if (options_.clip_norm <= 0) return {};
  const torch::NoGradGuard no_grad;
  const torch::Tensor gradients = space_.gradients();
  torch::Tensor norm;
  if (gradients.is_cuda()) {
    norm = gradients.norm();
  } else {
    // Blocks of a parameter, in the model's order: the sum depends neither on the layout nor on the threads.
    constexpr int64_t kBlock = 1 << 15;
    struct Block {
      int64_t begin, end;
    };
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < space_.parameters().size(); ++i) {
      const GradientSlot& slot = space_.slots()[space_.slot_of(i)];
      for (int64_t at = 0; at < slot.elements; at += kBlock)
        blocks.push_back({slot.begin + at, slot.begin + std::min(at + kBlock, slot.elements)});
    }
    std::vector<double> sums(blocks.size());
    const float* const data = gradients.data_ptr<float>();
    at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        double lanes[8] = {};
        const Block block = blocks[static_cast<std::size_t>(b)];
        int64_t i = block.begin;
        for (; i + 8 <= block.end; i += 8)
          for (int lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(data[i + lane]) * data[i + lane];
        for (; i < block.end; ++i) lanes[0] += static_cast<double>(data[i]) * data[i];
        for (int lane = 1; lane < 8; ++lane) lanes[0] += lanes[lane];
        sums[static_cast<std::size_t>(b)] = lanes[0];
      }
    });
    double sum = 0;
    for (const double block_sum : sums) sum += block_sum;
    norm = torch::full({}, std::sqrt(sum), torch::kFloat32);
  }
  return (options_.clip_norm / (norm + 1e-6)).clamp_max(1.0);
}

void Engine::update(const Share& share, int64_t begin, int64_t end, const torch::Tensor& gradient_scale) {
  const torch::NoGradGuard no_grad;
  const int64_t length = share.end - share.begin;
  const torch::Tensor values = space_.values().narrow(0, share.begin, length);
  const torch::Tensor gradients = space_.gradients().narrow(0, share.begin, length);
  // Neighbours that were first updated in the same step go together: in practice, one slice over everything. An
  // optimizer that needs whole tensors gets them one by one.
  const auto& slots = space_.slots();
  const auto since_of = [&](std::size_t slot) {
    return first_update_[static_cast<std::size_t>(slots[slot].parameter)];
  };
  const auto end_of = [&](std::size_t slot) {
    return slot + 1 < slots.size() ? slots[slot + 1].begin : space_.elements();
  };
  std::size_t slot = 0;
  while (slot < slots.size() && end_of(slot) <= begin) ++slot;
  while (slot < slots.size() && slots[slot].begin < end) {
    const int64_t from = std::max(begin, slots[slot].begin), since = since_of(slot);
    while (!share.optimizer->needs_whole_tensors() && slot + 1 < slots.size() && slots[slot + 1].begin < end &&
           since_of(slot + 1) == since)
      ++slot;
    const int64_t to = std::min(end, end_of(slot++));
    if (since == 0) continue;
    share.optimizer->update({values, gradients, from - share.begin, to - share.begin, updating_step_ + 1 - since},
                            learning_rate_, gradient_scale);
  }
}

void Engine::update_all() { update(whole_, 0, space_.elements(), clip_factor()); }

void Engine::drain() {
  gate_.reset();
  if (!comm_thread_) return;
  waited_s_ += comm_thread_->wait_for_step();
  link_->join();
}

void Engine::settle() {
  drain();
  if (search_) search_->disturb();
  if (comm_.size() == 1) return;
  log_.compare(comm_);
  for (const auto& buffer : model_.named_buffers()) broadcast(buffer.value());
}

int64_t Engine::optimizer_state_bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const FlatOptimizer& optimizer) {
    for (const torch::Tensor& buffer : optimizer.state()) bytes += static_cast<int64_t>(buffer.nbytes());
  };
  if (whole_.optimizer) add(*whole_.optimizer);
  for (const auto& share : shares_)
    if (share) add(*share->optimizer);
  return bytes;
}

std::vector<std::pair<std::string, torch::Tensor>> Engine::optimizer_state() {
  const std::vector<torch::Tensor> buffers = whole_state();
  std::vector<std::string> names;
  if (whole_.optimizer) names = whole_.optimizer->state_names();
  for (const auto& share : shares_)
    if (share) names = share->optimizer->state_names();
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      tensors.emplace_back(names[b] + "." + space_.parameters()[i].name,
                           space_.view(buffers[b], i).to(torch::kCPU).contiguous());
  return tensors;
}

void Engine::restore(int64_t steps_done, std::vector<int64_t> first_updates,
                     const std::function<torch::Tensor(const std::string&)>& find) {
  const torch::NoGradGuard no_grad;
  const auto names = whole_.optimizer->state_names();
  const auto buffers = whole_.optimizer->state();
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      space_.view(buffers[b], i).copy_(find(names[b] + "." + space_.parameters()[i].name));
  if (first_updates.size() != first_update_.size())
    throw Error("the optimizer state is of another model: it has {} parameters, not {}", first_updates.size(),
                first_update_.size());
  first_update_ = std::move(first_updates);
  steps_done_ = steps_done;
}

}  // namespace tutti
