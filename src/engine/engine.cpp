#include "engine/engine.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "comm/exchange.h"

namespace tutti {

Engine::Engine(torch::nn::Module& model, Communicator& comm, const EngineOptions& options)
    : model_(model),
      comm_(comm),
      options_(options),
      space_(model, comm),
      optimizer_(make_optimizer(options.optimizer, space_.values())),
      link_(make_device_link(space_, comm)),
      plan_(make_bsp_plan(space_.unmeasured_profile(), comm.size(), options.strategy_options)),
      written_(space_.parameters().size(), 0),
      first_update_(space_.parameters().size(), 0),
      hooks_(space_.parameters(), [this](std::size_t parameter) { on_gradient(parameter); }) {
  find_strategy(options.strategy);  // before anything is spent on an unknown name
  if (comm.size() > 1) {
    broadcast(space_.values());
    for (const auto& buffer : model_.named_buffers()) broadcast(buffer.value());
    comm_thread_ = std::make_unique<CommThread>(plan_, comm_, *link_, log_, options_.comm_timeout);
  }
  if (options.profile_steps > 0)
    profiler_.emplace(space_, *link_);
  else
    adopt_strategy();
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

void Engine::begin_step() {
  std::fill(written_.begin(), written_.end(), 0);
  // Backward then hands each gradient over instead of adding it to what is there; on_gradient puts it in its place.
  for (const FlatParameter& parameter : space_.parameters()) parameter.tensor.mutable_grad().reset();
  if (comm_thread_) comm_thread_->begin_step(steps_done_);
  if (profiler_) profiler_->begin_forward();
}

void Engine::backward(const torch::Tensor& loss, double weight, bool is_last) {
  is_last_micro_batch_ = is_last;
  if (profiler_ && is_last) profiler_->begin_backward();
  loss.backward(torch::full_like(loss, weight));
  if (profiler_ && is_last) profiler_->end_backward();
  if (profiler_ && !is_last) profiler_->repeat_forward();
}

void Engine::on_gradient(std::size_t parameter) {
  torch::Tensor& gradient = space_.parameters()[parameter].tensor.mutable_grad();
  if (!gradient.defined()) return;  // backward reached the parameter and had nothing for it
  if (!written_[parameter]) {
    if (gradient.is_sparse())
      throw Error("parameter '{}' has a sparse gradient; use dense ones (for an embedding: sparse = false)",
                  space_.parameters()[parameter].name);
    const torch::NoGradGuard no_grad;
    space_.gradient(parameter).copy_(gradient);
    gradient = space_.gradient(parameter);
    written_[parameter] = 1;
  }
  if (!is_last_micro_batch_) return;
  if (profiler_) profiler_->gradient_ready(parameter);
  if (!comm_thread_) return;
  const std::size_t slot = space_.slot_of(parameter);
  link_->gradient_queued(slot);
  comm_thread_->gradient_ready(slot);
}

StepTimes Engine::finish_step(double learning_rate) {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (written_[i]) continue;
    space_.gradient(i).zero_();
    space_.parameters()[i].tensor.mutable_grad() = space_.gradient(i);
  }
  StepTimes times;
  if (comm_thread_) {
    link_->backward_queued();
    comm_thread_->backward_done();
    link_->wait_for_backward();
    const CommThread::StepTimes transfer_times = comm_thread_->wait_for_step();
    link_->join();
    times = {transfer_times.busy_s, transfer_times.wait_s};
  }
  agree_on_new_parameters();
  update(learning_rate);
  ++steps_done_;
  if (profiler_ && profiler_->steps() >= options_.profile_steps) adopt_strategy();
  return times;
}

void Engine::agree_on_new_parameters() {
  // Only while some parameter has never had a gradient: all ranks know that together, so all come here or none.
  if (std::all_of(first_update_.begin(), first_update_.end(), [](int64_t step) { return step > 0; })) return;
  std::vector<int64_t> has_gradient(written_.begin(), written_.end());
  comm_.all_reduce_sum({has_gradient.data(), has_gradient.size(), DataType::i64})->wait();
  for (std::size_t i = 0; i < has_gradient.size(); ++i)
    if (first_update_[i] == 0 && has_gradient[i] > 0) first_update_[i] = steps_done_ + 1;
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

void Engine::update(double learning_rate) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor factor = clip_factor();
  // Neighbours that were first updated in the same step go together: in practice, one slice over everything.
  const auto& slots = space_.slots();
  for (std::size_t first = 0, next = 0; first < slots.size(); first = next) {
    const int64_t since = first_update_[static_cast<std::size_t>(slots[first].parameter)];
    next = first;
    while (next < slots.size() && first_update_[static_cast<std::size_t>(slots[next].parameter)] == since) ++next;
    if (since == 0) continue;
    const int64_t end = next < slots.size() ? slots[next].begin : space_.elements();
    optimizer_->update({space_.values(), space_.gradients(), slots[first].begin, end, steps_done_ + 2 - since}, learning_rate,
                       factor);
  }
}

void Engine::adopt_strategy() {
  std::string text;
  if (comm_.rank() == 0) {
    const Profile profile = profiler_ ? profiler_->result() : space_.unmeasured_profile();
    const Plan plan = find_strategy(options_.strategy).make_plan(profile, comm_.size(), options_.strategy_options);
    text = nlohmann::json({{"profile", profile}, {"plan", plan}}).dump();
  }
  // Rank 0's plan for everybody: ranks that planned for themselves could differ.
  const auto decided = nlohmann::json::parse(broadcast_text(comm_, text));
  if (profiler_) profile_ = decided.at("profile").get<Profile>();
  profiler_.reset();
  comm_thread_.reset();
  plan_ = decided.at("plan").get<Plan>();
  check_plan(plan_);
  space_.lay_out(plan_.slots, optimizer_->state());
  if (comm_.size() > 1) comm_thread_ = std::make_unique<CommThread>(plan_, comm_, *link_, log_, options_.comm_timeout);
}

void Engine::synchronize_buffers() {
  if (comm_.size() == 1) return;
  log_.compare(comm_);
  for (const auto& buffer : model_.named_buffers()) broadcast(buffer.value());
}

std::vector<std::pair<std::string, torch::Tensor>> Engine::optimizer_state() const {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  const auto names = optimizer_->state_names();
  const auto buffers = optimizer_->state();
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      tensors.emplace_back(names[b] + "." + space_.parameters()[i].name, space_.view(buffers[b], i).to(torch::kCPU).contiguous());
  return tensors;
}

void Engine::restore(int64_t steps_done, std::vector<int64_t> first_updates,
                     const std::function<torch::Tensor(const std::string&)>& find) {
  const torch::NoGradGuard no_grad;
  const auto names = optimizer_->state_names();
  const auto buffers = optimizer_->state();
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      space_.view(buffers[b], i).copy_(find(names[b] + "." + space_.parameters()[i].name));
  if (first_updates.size() != first_update_.size())
    throw Error("the optimizer state is of another model: it has {} parameters, not {}", first_updates.size(), first_update_.size());
  first_update_ = std::move(first_updates);
  steps_done_ = steps_done;
}

}  // namespace tutti
