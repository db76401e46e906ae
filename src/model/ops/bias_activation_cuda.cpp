#include "kernels/bias_activation.h"

#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/cuda_status.h"
#include "model/ops/announce.h"
#include "model/ops/gpu.h"
#include "model/ops/gpu_cuda.h"

namespace tutti::gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

BiasRun describe_bias(const torch::Tensor& x, const torch::Tensor& bias) {
  BiasRun run;
  run.type = element_type(x);
  run.width = x.size(-1);
  run.rows = x.numel() / run.width;
  run.bias = bias.data_ptr<float>();
  return run;
}

/// Gradients of rows and of their bias, and memory to work with.
struct BiasGradientTensors {
  BiasGradientTensors(const BiasRun& run, const torch::Tensor& like, const torch::Tensor& like_bias)
      : x(torch::empty_like(like)), bias(torch::empty_like(like_bias)) {
    int64_t partial_rows = 0;
    check_cuda(bias_partial_rows(run, partial_rows), "bias gradients");
    partial = torch::empty({partial_rows, run.width}, like_bias.options());
  }
  BiasGradients pointers() const { return {x.data_ptr(), bias.data_ptr<float>(), partial.data_ptr<float>()}; }

  torch::Tensor x, bias, partial;
};

struct BiasGelu : torch::autograd::Function<BiasGelu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& bias) {
    const torch::Tensor out = torch::empty_like(x);
    check_cuda(
        bias_gelu_forward(describe_bias(x, bias), x.data_ptr(), out.data_ptr(), at::cuda::getCurrentCUDAStream()),
        "bias_gelu");
    context->save_for_backward({x, bias});
    return out;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    refuse_second_derivatives("tutti::bias_gelu");
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &bias = saved[1];
    const BiasRun run = describe_bias(x, bias);
    const torch::Tensor given = gradients[0].to(x.scalar_type()).contiguous();
    const BiasGradientTensors results(run, x, bias);
    check_cuda(
        bias_gelu_backward(run, x.data_ptr(), given.data_ptr(), results.pointers(), at::cuda::getCurrentCUDAStream()),
        "bias_gelu");
    return {results.x, results.bias};
  }
};

struct BiasRelu : torch::autograd::Function<BiasRelu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& bias,
                               double dropout_share) {
    const torch::Tensor out = torch::empty_like(x);
    torch::Tensor drawn;  // not kept: what was dropped shows in the result
    const DropoutRun dropout = begin_dropout(dropout_share, x, drawn);
    check_cuda(bias_relu_forward(describe_bias(x, bias), dropout, x.data_ptr(), out.data_ptr(),
                                 at::cuda::getCurrentCUDAStream()),
               "bias_relu");
    context->save_for_backward({out, bias});
    context->saved_data["share"] = dropout_share;
    return out;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    refuse_second_derivatives("tutti::bias_relu");
    const auto saved = context->get_saved_variables();
    const torch::Tensor &out = saved[0], &bias = saved[1];
    const BiasRun run = describe_bias(out, bias);
    const torch::Tensor given = gradients[0].to(out.scalar_type()).contiguous();
    const BiasGradientTensors results(run, out, bias);
    check_cuda(bias_relu_backward(run, dropout_rule(context->saved_data["share"].toDouble()), out.data_ptr(),
                                  given.data_ptr(), results.pointers(), at::cuda::getCurrentCUDAStream()),
               "bias_relu");
    return {results.x, results.bias, torch::Tensor()};
  }
};

}  // namespace

torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias) {
  TUTTI_ANNOUNCE_OPERATOR("tutti::bias_gelu", x, bias);
  return BiasGelu::apply(as_computed(x).contiguous(), bias);
}

torch::Tensor bias_relu(const torch::Tensor& x, const torch::Tensor& bias, double dropout_share) {
  TUTTI_ANNOUNCE_OPERATOR("tutti::bias_relu", x, bias);
  return BiasRelu::apply(as_computed(x).contiguous(), bias, dropout_share);
}

}  // namespace tutti::gpu
