#include "model/ops/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <mutex>

#include "model/ops/lanes.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// What makes an element of a call be kept: hash(position, key) >= threshold.
struct Choice {
  uint32_t key;
  uint32_t threshold;
  float scale;
};

TUTTI_PER_CPU void scale_kept(const float* from, float* to, int64_t begin, int64_t end, Choice choice) {
  for (int64_t i = begin; i < end; ++i) {
    // lowbias32 (C. Wellons, "Prospecting for hash functions", 2018)
    uint32_t hash = static_cast<uint32_t>(i) ^ choice.key;
    hash = (hash ^ (hash >> 16)) * 0x7feb352dU;
    hash = (hash ^ (hash >> 15)) * 0x846ca68bU;
    hash ^= hash >> 16;
    to[i] = hash >= choice.threshold ? from[i] * choice.scale : 0.F;
  }
}

torch::Tensor drop(const torch::Tensor& input, Choice choice) {
  const torch::Tensor dense = input.contiguous();
  torch::Tensor output = torch::empty_like(dense);
  const float* const from = dense.data_ptr<float>();
  float* const to = output.data_ptr<float>();
  at::parallel_for(0, dense.numel(), 1 << 15,
                   [=](int64_t begin, int64_t end) { scale_kept(from, to, begin, end, choice); });
  return output;
}

uint32_t draw_key() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random();
}

struct HashDropout : torch::autograd::Function<HashDropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, double probability) {
    const Choice choice{draw_key(), static_cast<uint32_t>(std::ldexp(probability, 32)),
                        static_cast<float>(1 / (1 - probability))};
    context->saved_data["key"] = static_cast<int64_t>(choice.key);
    context->saved_data["threshold"] = static_cast<int64_t>(choice.threshold);
    context->saved_data["scale"] = static_cast<double>(choice.scale);
    return drop(input, choice);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Choice choice{static_cast<uint32_t>(context->saved_data["key"].toInt()),
                        static_cast<uint32_t>(context->saved_data["threshold"].toInt()),
                        static_cast<float>(context->saved_data["scale"].toDouble())};
    return {drop(gradients[0], choice), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor dropout(const torch::Tensor& input, double probability) {
  const bool is_fast =
      input.device().is_cpu() && input.scalar_type() == torch::kFloat && probability >= 0 && probability < 1;
  return is_fast ? HashDropout::apply(input, probability) : torch::dropout(input, probability, /*train=*/true);
}

}  // namespace tutti
