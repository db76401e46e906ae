#include "model/ops/attention.h"

#include <cmath>

#include "base/torch_compat.h"
#include "model/ops/dropout.h"

namespace tutti {
namespace {

torch::Tensor mix(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, const torch::Tensor& bias,
                  double dropout_share) {
  // On a CPU torch's own fused operation knows no dropout, and its dropout is slow.
  if (kHasFusedAttention && q.is_cuda()) return fused_attention(q, k, v, bias, dropout_share);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  torch::Tensor weights = torch::softmax(torch::matmul(q * scale, k.transpose(-2, -1)) + bias, -1);
  if (dropout_share > 0) weights = dropout(weights, dropout_share);
  return torch::matmul(weights, v);
}

}  // namespace

torch::Tensor padding_bias(const torch::Tensor& is_token) {
  // Far below any score and still finite in 16 bits: a row of padding alone gets an average instead of NaN.
  constexpr double kNever = -1e9;
  const torch::Tensor never = torch::full({}, kNever, is_token.options().dtype(torch::kFloat));
  return torch::where(is_token.ne(0), torch::zeros_like(never), never).unsqueeze(1).unsqueeze(1);
}

torch::Tensor attention(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                        int64_t heads, const torch::Tensor& bias, double dropout_share) {
  // -1, not the batch's size: a trace of this then takes batches of any size.
  const int64_t length = queries.size(1), width = queries.size(2);
  const auto by_head = [&](const torch::Tensor& x) {
    return x.view({-1, length, heads, width / heads}).transpose(1, 2);
  };
  const torch::Tensor mixed = mix(by_head(queries), by_head(keys), by_head(values), bias, dropout_share);
  return mixed.transpose(1, 2).reshape({-1, length, width});
}

}  // namespace tutti
