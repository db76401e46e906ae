#include "model/ops/gpu_cuda.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <mutex>

#include "base/torch_compat.h"
#include "kernels/add_norm.h"
#include "model/ops/gpu.h"
#include "model/ops/plain.h"
#include "tutti/error.h"

namespace tutti::gpu {

bool takes(const torch::Tensor& x, const torch::Tensor& parameter) {
  const auto type = x.scalar_type();
  return x.is_cuda() && (type == torch::kFloat || type == torch::kBFloat16) &&
         parameter.scalar_type() == torch::kFloat && !PlainOperations::is_on() && !torch::jit::tracer::isTracing() &&
         x.dim() > 0;
}

bool takes_rows(const torch::Tensor& residual, const torch::Tensor& parameter) {
  return takes(residual, parameter) && add_norm_takes(residual.size(-1));
}

bool takes_linear(const torch::Tensor& x, const torch::Tensor& parameter) {
  return Bf16Autocast::is_on() && takes(x, parameter) && x.dim() > 1 && x.numel() > 0;
}

torch::Tensor as_computed(const torch::Tensor& x) { return Bf16Autocast::is_on() ? x.to(torch::kBFloat16) : x; }

ElementType element_type(const torch::Tensor& x) {
  return x.scalar_type() == torch::kBFloat16 ? ElementType::bf16 : ElementType::fp32;
}

DropoutRun begin_dropout(double share, const torch::Tensor& like, torch::Tensor& drawn) {
  DropoutRun run;
  if (share <= 0) return run;
  run.rule = dropout_rule(share);
  drawn = torch::empty({2}, like.options().dtype(torch::kLong));
  run.drawn = reinterpret_cast<uint64_t*>(drawn.data_ptr<int64_t>());
  auto* const generator =
      at::check_generator<at::CUDAGeneratorImpl>(at::cuda::detail::getDefaultCUDAGenerator(like.get_device()));
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  // As much as a thread takes of each philox sequence.
  const at::PhiloxCudaState state = generator->philox_cuda_state(4);
  if (state.captured_) {
    run.seed_at = state.seed_.ptr;
    run.offset_at = state.offset_.ptr;
    run.offset = state.offset_intragraph_;
  } else {
    run.seed = state.seed_.val;
    run.offset = state.offset_.val;
  }
  return run;
}

DropoutRun same_dropout(double share, const torch::Tensor& drawn) {
  DropoutRun run;
  if (share <= 0) return run;
  run.rule = dropout_rule(share);
  run.drawn = reinterpret_cast<uint64_t*>(drawn.data_ptr<int64_t>());
  return run;
}

void refuse_second_derivatives(const char* name) {
  if (torch::GradMode::is_enabled())
    throw UsageError("{}: its kernels have no second derivative; compute it under PlainOperations, or on a CPU", name);
}

}  // namespace tutti::gpu
