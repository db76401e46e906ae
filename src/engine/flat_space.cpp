#include "engine/flat_space.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "comm/exchange.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::vector<FlatParameter> trainable_parameters(const std::vector<NamedTensor>& tensors) {
  std::vector<FlatParameter> parameters;
  std::set<const void*> seen;
  for (const auto& [name, tensor, group] : tensors) {
    if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    if (tensor.scalar_type() != torch::kFloat32)
      throw Error(
          "parameter '{}' is {}, not float32: keep parameters in float32, and use autocast (--precision) for the "
          "arithmetic",
          name, c10::toString(tensor.scalar_type()));
    const torch::Tensor dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
    parameters.push_back({name, tensor, dense.sizes().vec(), dense.strides().vec(), group});
  }
  return parameters;
}

void check_same_on_all_ranks(const std::vector<FlatParameter>& parameters, Communicator& comm) {
  nlohmann::json mine = nlohmann::json::array();
  for (const FlatParameter& parameter : parameters)
    mine.push_back({{"name", parameter.name}, {"shape", parameter.sizes}});
  const auto texts = gather_texts(comm, mine.dump());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto first = nlohmann::json::parse(texts[0]), other = nlohmann::json::parse(texts[rank]);
    std::size_t i = 0;
    while (i < first.size() && i < other.size() && first[i] == other[i]) ++i;
    const auto at = [i](const nlohmann::json& list) {
      return i < list.size() ? list[i].dump() : std::string("missing");
    };
    throw Error(
        "ranks have different models: trainable parameter {} is {} on rank {} and {} on rank 0.\n"
        "Start all ranks with the same binary and options.",
        i, at(other), rank, at(first));
  }
}

}  // namespace

FlatSpace::FlatSpace(const std::vector<NamedTensor>& tensors, Communicator& comm)
    : parameters_(trainable_parameters(tensors)) {
  check_same_on_all_ranks(parameters_, comm);
  const Plan layout = empty_plan(unmeasured_profile(), "", comm.size());
  slots_ = layout.slots;
  elements_ = layout.elements;
  const torch::Device device = parameters_.empty() ? torch::Device(torch::kCPU) : parameters_[0].tensor.device();
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  // Both in the communicator's memory on the CPU: strategies gather gradients or parameters.
  const auto make_buffer = [&] {
    if (!device.is_cpu() || elements_ == 0) return torch::zeros({elements_}, options);
    return torch::from_blob(comm.allocate(static_cast<std::size_t>(elements_) * sizeof(float)), {elements_}, options);
  };
  values_ = make_buffer();
  gradients_ = make_buffer();
  slot_of_parameter_.resize(parameters_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    slot_of_parameter_[static_cast<std::size_t>(slots_[slot].parameter)] = slot;
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) view(values_, i).copy_(parameters_[i].tensor);
  bind_views();
}

torch::Tensor FlatSpace::view(const torch::Tensor& flat, std::size_t parameter) const {
  const FlatParameter& p = parameters_[parameter];
  return flat.as_strided(p.sizes, p.strides, flat.storage_offset() + slots_[slot_of_parameter_[parameter]].begin);
}

void FlatSpace::bind_views() {
  const std::vector<torch::Tensor> before = std::exchange(gradient_views_, {});
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& parameter = parameters_[i].tensor;
    parameter.set_data(view(values_, i));
    gradient_views_.push_back(view(gradients_, i).detach());  // no view to autograd: optimizers may detach_() it
    // A gradient that is not here, because it was forgotten or is somebody else's, stays so.
    if (before.empty() || parameter.grad().is_same(before[i])) parameter.mutable_grad() = gradient_views_.back();
  }
}

void FlatSpace::lay_out(const std::vector<GradientSlot>& slots, const std::vector<torch::Tensor>& others) {
  std::vector<std::size_t> new_slot(parameters_.size(), slots.size());
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    new_slot.at(static_cast<std::size_t>(slots[slot].parameter)) = slot;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (new_slot[i] == slots.size() || slots[new_slot[i]].elements != slots_[slot_of_parameter_[i]].elements)
      throw Error("the plan does not fit the model: parameter '{}' is missing or has another size",
                  parameters_[i].name);

  if (slots == slots_) return;
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers = others;
  buffers.push_back(values_);
  buffers.push_back(gradients_);
  for (torch::Tensor& buffer : buffers) {
    const torch::Tensor before = buffer.clone();
    buffer.zero_();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const GradientSlot& from = slots_[slot_of_parameter_[i]];
      const GradientSlot& to = slots[new_slot[i]];
      buffer.narrow(0, to.begin, to.elements).copy_(before.narrow(0, from.begin, from.elements));
    }
  }
  slots_ = slots;
  slot_of_parameter_ = new_slot;
  bind_views();
}

Profile FlatSpace::unmeasured_profile() const {
  Profile profile;
  for (std::size_t i = parameters_.size(); i-- > 0;)
    profile.gradients.push_back({parameters_[i].name, static_cast<int>(i), parameters_[i].tensor.numel(), 0, 0});
  return profile;
}

}  // namespace tutti
