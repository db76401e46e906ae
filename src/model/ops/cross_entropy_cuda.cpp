#include "kernels/cross_entropy.h"

#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/cuda_status.h"
#include "base/torch_compat.h"
#include "model/ops/announce.h"
#include "model/ops/gpu.h"
#include "model/ops/gpu_cuda.h"

namespace tutti::gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// Rows of bf16 are multiples of 16 bytes then; matrix products without that take up to three times as long.
constexpr int64_t kClassesAtOnce = 8;

/// In bf16, with rows of zeros at the end.
torch::Tensor rounded_up(const torch::Tensor& parameter) {
  std::vector<int64_t> shape = parameter.sizes().vec();
  shape[0] = (shape[0] + kClassesAtOnce - 1) / kClassesAtOnce * kClassesAtOnce;
  torch::Tensor all = torch::empty(shape, parameter.options().dtype(torch::kBFloat16));
  all.narrow(0, 0, parameter.size(0)).copy_(parameter);
  if (shape[0] > parameter.size(0)) all.slice(0, parameter.size(0)).zero_();
  return all;
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  /// `x` in bf16, [rows, width].
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& parameter,
                               const torch::Tensor& bias, const torch::Tensor& targets, int64_t ignored) {
    const torch::Tensor weight = rounded_up(parameter);
    const torch::Tensor scores = at::addmm(rounded_up(bias), x, weight.t());
    const auto in_fp32 = x.options().dtype(torch::kFloat);
    const torch::Tensor log_sums = torch::empty({x.size(0)}, in_fp32), losses = torch::empty_like(log_sums);
    const torch::Tensor mean = torch::empty({2}, in_fp32);
    context->saved_data["classes"] = parameter.size(0);
    context->saved_data["ignored"] = ignored;
    context->save_for_backward({x, weight, scores, targets, log_sums, mean});
    check_cuda(cross_entropy_forward(describe(scores, parameter.size(0), targets, ignored, log_sums, mean),
                                     losses.data_ptr<float>(), at::cuda::getCurrentCUDAStream()),
               "cross entropy");
    return mean[0].clone();
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    refuse_second_derivatives("tutti::linear_cross_entropy");
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &scores = saved[2];
    const int64_t classes = context->saved_data["classes"].toInt();
    const CrossEntropyRun run =
        describe(scores, classes, saved[3], context->saved_data["ignored"].toInt(), saved[4], saved[5]);
    const torch::Tensor given = gradients[0].to(torch::kFloat).contiguous(), of_scores = torch::empty_like(scores);
    check_cuda(
        cross_entropy_backward(run, given.data_ptr<float>(), of_scores.data_ptr(), at::cuda::getCurrentCUDAStream()),
        "cross entropy");
    torch::Tensor of_x, of_weight, of_bias;
    if (context->needs_input_grad(0)) of_x = at::mm(of_scores, weight);
    if (context->needs_input_grad(1)) of_weight = product_in_fp32(of_scores.t(), x).narrow(0, 0, classes);
    if (context->needs_input_grad(2)) of_bias = sum_of_rows(of_scores).narrow(0, 0, classes);
    return {of_x, of_weight, of_bias, torch::Tensor(), torch::Tensor()};
  }

 private:
  static CrossEntropyRun describe(const torch::Tensor& scores, int64_t classes, const torch::Tensor& targets,
                                  int64_t ignored, const torch::Tensor& log_sums, const torch::Tensor& mean) {
    CrossEntropyRun run;
    run.type = element_type(scores);
    run.rows = scores.size(0);
    run.classes = classes;
    run.stride = scores.size(1);
    run.scores = scores.data_ptr();
    run.targets = targets.data_ptr<int64_t>();
    run.ignored = ignored;
    run.log_sums = log_sums.data_ptr<float>();
    run.mean = mean.data_ptr<float>();
    return run;
  }
};

}  // namespace

torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                   const torch::Tensor& targets, int64_t ignored) {
  TUTTI_ANNOUNCE_OPERATOR("tutti::linear_cross_entropy", x, weight, bias);
  const torch::Tensor rows = as_computed(x).contiguous().view({-1, x.size(-1)});
  return LinearCrossEntropy::apply(rows, weight, bias, targets.flatten().contiguous(), ignored);
}

}  // namespace tutti::gpu
