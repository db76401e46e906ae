#include "engine/parameter_update.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_foreach_norm.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/error.h"

namespace tutti {

namespace {

/// Those that an optimizer for all groups is made with: one group with momentum gives all of them that state.
OptimizerOptions for_all(const std::vector<OptimizerOptions>& groups) {
  OptimizerOptions options = groups[0];
  for (const OptimizerOptions& group : groups) options.momentum = std::max(options.momentum, group.momentum);
  return options;
}

}  // namespace

ParameterUpdate::ParameterUpdate(std::vector<OptimizerOptions> groups, double clip_norm, const FlatSpace& space,
                                 Communicator& comm)
    : groups_(std::move(groups)),
      clip_norm_(clip_norm),
      space_(space),
      comm_(comm),
      whole_{0, space.elements(), make_optimizer(for_all(groups_), space.values())},
      first_update_(space.parameters().size(), 0) {
  for (const OptimizerOptions& group : groups_) check_optimizer(group);
}

void ParameterUpdate::begin(int64_t step, std::vector<double> learning_rates) {
  step_ = step;
  learning_rates_ = std::move(learning_rates);
}

void ParameterUpdate::set_options(std::size_t group, const OptimizerOptions& options) {
  check_optimizer(options);
  const FlatOptimizer* const optimizer = any_optimizer();
  if (options.momentum > 0 && optimizer != nullptr && optimizer->state_names().empty())
    throw UsageError("the optimizer was made without momentum: give it one above 0 when it is made");
  groups_.at(group) = options;
}

bool ParameterUpdate::can_be_recorded() const {
  const FlatOptimizer* const optimizer = any_optimizer();
  return optimizer != nullptr && optimizer->can_be_recorded();
}

void ParameterUpdate::prepare(int64_t step, double learning_rate) {
  if (whole_.optimizer) whole_.optimizer->prepare(learning_rate, step);
  for (const auto& share : shares_)
    if (share) share->optimizer->prepare(learning_rate, step);
}

bool ParameterUpdate::has_new_parameters() const {
  return std::any_of(first_update_.begin(), first_update_.end(), [](int64_t step) { return step == 0; });
}

void ParameterUpdate::agree_on_new_parameters(const std::vector<char>& written) {
  if (!has_new_parameters()) return;
  std::vector<int64_t> has_gradient(written.begin(), written.end());
  comm_.all_reduce_sum({has_gradient.data(), has_gradient.size(), DataType::i64})->wait();
  for (std::size_t i = 0; i < has_gradient.size(); ++i)
    if (first_update_[i] == 0 && has_gradient[i] > 0) first_update_[i] = step_;
}

torch::Tensor ParameterUpdate::gradient_scale(double inverse_scale) const {
  const torch::NoGradGuard no_grad;
  if (clip_norm_ > 0) return (clip_norm_ / (gradient_norm() * inverse_scale + 1e-6)).clamp_max(1.0) * inverse_scale;
  if (inverse_scale == 1) return {};
  return torch::full({}, inverse_scale, space_.gradients().options());
}

torch::Tensor ParameterUpdate::gradient_norm() const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor gradients = space_.gradients();
  if (gradients.is_cuda()) {
    // Parameter by parameter, in the model's order: the sum does not depend on the layout.
    std::vector<torch::Tensor> parts;
    for (std::size_t i = 0; i < space_.parameters().size(); ++i) parts.push_back(space_.gradient(i));
    return torch::stack(at::_foreach_norm(parts)).norm();
  }
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
  return torch::full({}, std::sqrt(sum), torch::kFloat32);
}

void ParameterUpdate::update(const Share& share, int64_t begin, int64_t end, const torch::Tensor& gradient_scale) {
  const torch::NoGradGuard no_grad;
  const int64_t length = share.end - share.begin;
  const torch::Tensor values = space_.values().narrow(0, share.begin, length);
  const torch::Tensor gradients = space_.gradients().narrow(0, share.begin, length);
  // Neighbours of a group that were first updated in the same step go together: in practice, one slice over everything.
  // An optimizer that needs whole tensors gets them one by one.
  const auto& slots = space_.slots();
  const auto since_of = [&](std::size_t slot) {
    return first_update_[static_cast<std::size_t>(slots[slot].parameter)];
  };
  const auto group_of = [&](std::size_t slot) {
    return space_.parameters()[static_cast<std::size_t>(slots[slot].parameter)].group;
  };
  const auto end_of = [&](std::size_t slot) {
    return slot + 1 < slots.size() ? slots[slot + 1].begin : space_.elements();
  };
  std::size_t slot = 0;
  while (slot < slots.size() && end_of(slot) <= begin) ++slot;
  while (slot < slots.size() && slots[slot].begin < end) {
    const int64_t from = std::max(begin, slots[slot].begin), since = since_of(slot);
    const int group = group_of(slot);
    while (!share.optimizer->needs_whole_tensors() && slot + 1 < slots.size() && slots[slot + 1].begin < end &&
           since_of(slot + 1) == since && group_of(slot + 1) == group)
      ++slot;
    const int64_t to = std::min(end, end_of(slot++));
    if (since == 0) continue;
    share.optimizer->update({values, gradients, from - share.begin, to - share.begin, step_ + 1 - since,
                             &groups_[static_cast<std::size_t>(group)]},
                            rate_of(group), gradient_scale);
  }
}

bool ParameterUpdate::update_all(std::optional<double> inverse_scale) {
  if (inverse_scale && !torch::isfinite(space_.gradients()).all().item<bool>()) {
    // As if this step had not been: what was updated before has made one step less than the engine.
    for (int64_t& since : first_update_)
      if (since > 0) ++since;
    return false;
  }
  update(whole_, 0, space_.elements(), gradient_scale(inverse_scale.value_or(1)));
  return true;
}

void ParameterUpdate::update_piece(const Plan& plan, const UpdatePiece& piece, TraceBuffer* recording) {
  const Share& share = plan.sharded_optimizer ? *shares_[piece.transfer] : whole_;
  const int64_t begin = std::max(piece.begin, share.begin), end = std::min(piece.end, share.end);
  if (begin >= end) return;
  const TraceSpan span(recording, TraceKind::update, static_cast<int>(piece.transfer));
  update(share, begin, end, {});
}

void ParameterUpdate::shard(const Plan& plan) {
  const torch::NoGradGuard no_grad;
  const auto everything = whole_.optimizer->state();
  shares_.resize(plan.transfers.size());
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    if (transfer.operation != Operation::reduce_scatter) continue;
    const auto counts = shares(transfer, comm_.size());
    const int64_t begin = transfer.begin + static_cast<int64_t>(std::accumulate(
                                               counts.begin(), counts.begin() + comm_.rank(), std::size_t{0}));
    const int64_t length = static_cast<int64_t>(counts[static_cast<std::size_t>(comm_.rank())]);
    Share share{begin, begin + length, make_optimizer(for_all(groups_), space_.values().narrow(0, begin, length))};
    const auto mine = share.optimizer->state();
    for (std::size_t b = 0; b < mine.size(); ++b) mine[b].copy_(everything[b].narrow(0, begin, length));
    shares_[i] = std::move(share);
  }
  whole_.optimizer.reset();
}

std::vector<torch::Tensor> ParameterUpdate::gathered_state(const Plan& plan) const {
  if (whole_.optimizer) return whole_.optimizer->state();
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!shares_[i]) continue;
    const Share& share = *shares_[i];
    const auto mine = share.optimizer->state();
    const Transfer& transfer = plan.transfers[i];
    for (std::size_t b = 0; b < mine.size(); ++b) {
      if (buffers.size() <= b) buffers.push_back(torch::zeros({space_.elements()}));
      buffers[b].narrow(0, share.begin, share.end - share.begin).copy_(mine[b]);
      comm_
          .all_gather({buffers[b].data_ptr<float>() + transfer.begin, static_cast<std::size_t>(transfer.elements()),
                       DataType::f32},
                      shares(transfer, comm_.size()))
          ->wait();
    }
  }
  return buffers;
}

void ParameterUpdate::unite(const Plan& plan) {
  if (whole_.optimizer) return;
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> everything = gathered_state(plan);
  whole_.optimizer = make_optimizer(for_all(groups_), space_.values());
  const auto state = whole_.optimizer->state();
  for (std::size_t b = 0; b < state.size(); ++b) state[b].copy_(everything[b]);
  shares_.clear();
}

const FlatOptimizer* ParameterUpdate::any_optimizer() const {
  if (whole_.optimizer) return whole_.optimizer.get();
  for (const auto& share : shares_)
    if (share) return share->optimizer.get();
  return nullptr;
}

int64_t ParameterUpdate::state_bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const FlatOptimizer& optimizer) {
    for (const torch::Tensor& buffer : optimizer.state()) bytes += static_cast<int64_t>(buffer.nbytes());
  };
  if (whole_.optimizer) add(*whole_.optimizer);
  for (const auto& share : shares_)
    if (share) add(*share->optimizer);
  return bytes;
}

std::vector<std::pair<std::string, torch::Tensor>> ParameterUpdate::named_state(const Plan& plan) const {
  const std::vector<torch::Tensor> buffers = gathered_state(plan);
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      tensors.emplace_back(any_optimizer()->state_names()[b] + "." + space_.parameters()[i].name,
                           space_.view(buffers[b], i).to(torch::kCPU).contiguous());
  return tensors;
}

void ParameterUpdate::restore(std::vector<int64_t> first_updates,
                              const std::function<torch::Tensor(const std::string&)>& find) {
  const torch::NoGradGuard no_grad;
  const auto& names = whole_.optimizer->state_names();
  const auto& buffers = whole_.optimizer->state();
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (std::size_t i = 0; i < space_.parameters().size(); ++i)
      space_.view(buffers[b], i).copy_(find(names[b] + "." + space_.parameters()[i].name));
  if (first_updates.size() != first_update_.size())
    throw Error("the optimizer state is of another model: it has {} parameters, not {}", first_updates.size(),
                first_update_.size());
  first_update_ = std::move(first_updates);
}

}  // namespace tutti
