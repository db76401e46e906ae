#include "kernels/add_norm.h"

#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "base/cuda_status.h"
#include "base/torch_compat.h"
#include "model/ops/announce.h"
#include "model/ops/gpu.h"
#include "model/ops/gpu_cuda.h"

namespace tutti::gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct AddNorm : torch::autograd::Function<AddNorm> {
  /// All of `x` and `residual` in one type, one row after the other; parameters in fp32.
  static torch::Tensor forward(AutogradContext* context, const std::optional<torch::Tensor>& added,
                               const std::optional<torch::Tensor>& added_bias, const torch::Tensor& residual,
                               double dropout_share, const torch::Tensor& weight, const torch::Tensor& shift,
                               double epsilon) {
    const torch::Tensor x = added.value_or(torch::Tensor()), bias = added_bias.value_or(torch::Tensor());
    const torch::Tensor out = torch::empty_like(residual);
    const int64_t rows = residual.numel() / residual.size(-1);
    const auto in_fp32 = residual.options().dtype(torch::kFloat);
    const torch::Tensor statistics = torch::empty({2, rows}, in_fp32);
    AddNormRun run = describe(x, bias, residual, weight, shift, statistics, epsilon);
    torch::Tensor drawn;
    run.dropout = begin_dropout(x.defined() ? dropout_share : 0, residual, drawn);
    torch::Tensor kept;
    if (add_norm_keeps_bits(run, out.data_ptr())) {
      kept = torch::empty({residual.numel() / 8}, residual.options().dtype(torch::kByte));
      run.dropout.kept = kept.data_ptr<uint8_t>();
    }
    check_cuda(add_norm_forward(run, out.data_ptr(), at::cuda::getCurrentCUDAStream()), "add_norm");
    context->save_for_backward({x, bias, residual, weight, shift, statistics, drawn, kept});
    context->saved_data["share"] = x.defined() ? dropout_share : 0.0;
    context->saved_data["epsilon"] = epsilon;
    return out;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    refuse_second_derivatives("tutti::add_norm");
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &bias = saved[1], &residual = saved[2], &weight = saved[3];
    const double share = context->saved_data["share"].toDouble();
    AddNormRun run = describe(x, bias, residual, weight, saved[4], saved[5], context->saved_data["epsilon"].toDouble());
    run.dropout = same_dropout(share, saved[6]);
    run.dropout.kept = data_or_null<uint8_t>(saved[7]);
    const torch::Tensor given = gradients[0].to(residual.scalar_type()).contiguous();
    AddNormGradients results;
    const torch::Tensor of_residual = torch::empty_like(residual);
    results.residual = of_residual.data_ptr();
    torch::Tensor of_x;
    if (x.defined()) of_x = share > 0 ? torch::empty_like(x) : of_residual;
    if (x.defined() && share > 0) results.x = of_x.data_ptr();
    int64_t partial_rows = 0;
    check_cuda(add_norm_partial_rows(run, partial_rows), "add_norm");
    const torch::Tensor sums = torch::empty({3, run.width}, weight.options());
    const torch::Tensor partial = torch::empty({partial_rows, 3, run.width}, weight.options());
    results.sums = sums.data_ptr<float>();
    results.partial = partial.data_ptr<float>();
    check_cuda(add_norm_backward(run, given.data_ptr(), results, at::cuda::getCurrentCUDAStream()), "add_norm");
    return {of_x,           bias.defined() ? sums[2] : torch::Tensor(), of_residual, torch::Tensor(), sums[0], sums[1],
            torch::Tensor()};
  }

 private:
  static AddNormRun describe(const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& residual,
                             const torch::Tensor& weight, const torch::Tensor& shift, const torch::Tensor& statistics,
                             double epsilon) {
    AddNormRun run;
    run.type = element_type(residual);
    run.width = residual.size(-1);
    run.rows = residual.numel() / run.width;
    run.x = x.defined() ? x.data_ptr() : nullptr;
    run.bias = data_or_null<float>(bias);
    run.residual = residual.data_ptr();
    run.weight = weight.data_ptr<float>();
    run.shift = shift.data_ptr<float>();
    run.epsilon = static_cast<float>(epsilon);
    run.mean = statistics.data_ptr<float>();
    run.inverse_deviation = run.mean + run.rows;
    return run;
  }
};

}  // namespace

torch::Tensor add_norm(const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& residual,
                       double dropout_share, const torch::Tensor& weight, const torch::Tensor& shift, double epsilon) {
  TUTTI_ANNOUNCE_OPERATOR("tutti::add_norm", x, bias, residual, weight, shift);
  const torch::Tensor kept = as_computed(residual).contiguous();
  const torch::Tensor added = x.defined() ? x.to(kept.scalar_type()).contiguous() : x;
  const auto if_defined = [](const torch::Tensor& tensor) {
    return tensor.defined() ? std::optional<torch::Tensor>(tensor) : std::nullopt;
  };
  return AddNorm::apply(if_defined(added), if_defined(bias), kept, dropout_share, weight, shift, epsilon);
}

}  // namespace tutti::gpu
