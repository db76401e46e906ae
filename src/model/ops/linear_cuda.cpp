// Linear layers under autocast. Beside what torch does: several layers that read the same input are one matrix product;
// gradients of weights leave their product in fp32, where torch rounds them to bf16 and casts them back; the gradient
// of a bias is a sum with its own kernel; and another gradient of the input is added within the product.

#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/cuda_status.h"
#include "base/torch_compat.h"
#include "kernels/bias_activation.h"
#include "model/ops/announce.h"
#include "model/ops/gpu.h"
#include "model/ops/gpu_cuda.h"

namespace tutti::gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// In bf16, one below the other.
torch::Tensor stacked(at::TensorList parts) {
  if (parts.size() == 1) return parts[0].to(torch::kBFloat16);
  int64_t rows = 0;
  for (const torch::Tensor& part : parts) rows += part.size(0);
  std::vector<int64_t> shape = parts[0].sizes().vec();
  shape[0] = rows;
  torch::Tensor all = torch::empty(shape, parts[0].options().dtype(torch::kBFloat16));
  rows = 0;
  for (const torch::Tensor& part : parts) {
    all.narrow(0, rows, part.size(0)).copy_(part);
    rows += part.size(0);
  }
  return all;
}

/// Rows of `all` for each of `sizes`, where they are wanted.
void split(const torch::Tensor& all, const std::vector<int64_t>& sizes, tensor_list& to) {
  int64_t row = 0;
  for (const int64_t size : sizes) {
    to.push_back(all.defined() ? all.narrow(0, row, size) : torch::Tensor());
    row += size;
  }
}

/// sum + rows weight.
torch::Tensor add_product(const torch::Tensor& sum, const torch::Tensor& rows, const torch::Tensor& weight) {
  if (!sum.defined()) return at::mm(rows, weight);
  return at::addmm(sum.to(rows.scalar_type()).reshape({-1, weight.size(1)}), rows, weight);
}

struct Linear : torch::autograd::Function<Linear> {
  static tensor_list forward(AutogradContext* context, const torch::Tensor& x, at::TensorList weights,
                             at::TensorList biases) {
    const torch::Tensor weight = stacked(weights);
    const torch::Tensor rows = x.view({-1, x.size(-1)});
    const torch::Tensor y = biases.empty() ? at::mm(rows, weight.t()) : at::addmm(stacked(biases), rows, weight.t());
    std::vector<int64_t> sizes;
    for (const torch::Tensor& one : weights) sizes.push_back(one.size(0));
    context->saved_data["sizes"] = sizes;
    context->saved_data["has_bias"] = !biases.empty();
    context->save_for_backward({x, weight});
    context->set_materialize_grads(false);  // most callers use the first result alone
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return {y.view(shape), x};
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    refuse_second_derivatives("tutti::linear");
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const auto is_wanted = [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i)
        if (context->needs_input_grad(i)) return true;
      return false;
    };
    const auto in_rows = [](const torch::Tensor& tensor) {
      return tensor.to(torch::kBFloat16).contiguous().view({-1, tensor.size(-1)});
    };
    torch::Tensor of_x = gradients[1], of_weight, of_bias;
    if (gradients[0].defined()) {
      const torch::Tensor given = in_rows(gradients[0]);
      if (is_wanted(0, 1)) of_x = add_product(of_x, given, weight).view(x.sizes());
      if (is_wanted(1, sizes.size())) of_weight = product_in_fp32(given.t(), in_rows(x));
      if (has_bias && is_wanted(1 + sizes.size(), sizes.size())) of_bias = sum_of_rows(given);
    }
    tensor_list results{of_x};
    split(of_weight, sizes, results);
    if (has_bias) split(of_bias, sizes, results);
    return results;
  }
};

}  // namespace

torch::Tensor sum_of_rows(const torch::Tensor& rows) {
  BiasRun run;
  run.type = element_type(rows);
  run.rows = rows.size(0);
  run.width = rows.size(1);
  int64_t partial_rows = 0;
  check_cuda(bias_partial_rows(run, partial_rows), "bias gradients");
  const auto in_fp32 = rows.options().dtype(torch::kFloat);
  const torch::Tensor sums = torch::empty({run.width}, in_fp32);
  const torch::Tensor partial = torch::empty({partial_rows, run.width}, in_fp32);
  check_cuda(bias_gradient(run, rows.data_ptr(), {nullptr, sums.data_ptr<float>(), partial.data_ptr<float>()},
                           at::cuda::getCurrentCUDAStream()),
             "bias gradients");
  return sums;
}

LinearResult linear(const torch::Tensor& x, const std::vector<torch::Tensor>& weights,
                    const std::vector<torch::Tensor>& biases) {
  // Engines wait for each parameter that is still under way.
  for (const auto* const parameters : {&weights, &biases})
    for (const torch::Tensor& parameter : *parameters) {
      TUTTI_ANNOUNCE_OPERATOR("tutti::linear", parameter);
    }
  const tensor_list results =
      Linear::apply(as_computed(x).contiguous(), at::TensorList(weights), at::TensorList(biases));
  return {results[0], results[1]};
}

}  // namespace tutti::gpu
