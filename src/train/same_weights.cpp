#include "train/same_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "comm/exchange.h"
#include "train/failures.h"

namespace tutti {
namespace {

/// Every element as a whole number. Addition of those wraps around, so the order of adding does not matter.
torch::Tensor sum_of_bits(const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kBool) return tensor.sum(torch::kInt64);
  const auto words = tensor.element_size() == 8   ? torch::kInt64
                     : tensor.element_size() == 4 ? torch::kInt32
                     : tensor.element_size() == 2 ? torch::kInt16
                                                  : torch::kInt8;
  return tensor.view(words).sum(torch::kInt64);
}

template <typename Use>
void for_tensors(const torch::nn::Module& model, Use use) {
  for (const auto& item : model.named_parameters()) use(item.key(), item.value().detach());
  for (const auto& item : model.named_buffers()) use(item.key(), item.value().detach());
}

}  // namespace

int64_t weights_checksum(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> sums;
  for_tensors(model, [&](const std::string&, const torch::Tensor& tensor) {
    if (tensor.numel() > 0) sums.push_back(sum_of_bits(tensor));
  });
  if (sums.empty()) return 0;
  const torch::Tensor all = torch::stack(sums).to(torch::kCPU);  // one wait for the device
  uint64_t checksum = 0;
  for (int64_t i = 0; i < all.numel(); ++i)
    checksum = checksum * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(all.data_ptr<int64_t>()[i]);
  return static_cast<int64_t>(checksum);
}

std::vector<int> odd_ranks(const std::vector<int64_t>& numbers) {
  std::map<int64_t, std::size_t> counts;
  for (const int64_t number : numbers) ++counts[number];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool has_majority = most != counts.end() && 2 * most->second > numbers.size();
  std::vector<int> odd;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank)
    if (!has_majority || numbers[rank] != most->first) odd.push_back(static_cast<int>(rank));
  return odd;
}

void require_same_weights(const torch::nn::Module& model, Communicator& comm, const std::string& when,
                          const std::string& advice) {
  if (comm.size() == 1) return;
  std::vector<int64_t> numbers;
  for (const auto& rank : gather_numbers(comm, {weights_checksum(model)})) numbers.push_back(rank[0]);
  const std::vector<int> odd = odd_ranks(numbers);
  if (odd.empty()) return;
  finish_together(comm);
  if (comm.rank() != odd[0]) throw Stopped("ranks have different weights");
  const bool has_majority = odd.size() < numbers.size();
  throw TrainingFailed(kExitRanksDiffer,
                       "{} rank{} {} {} other weights than {}. A bit has flipped in the memory of a machine, or ranks "
                       "did not get the same options.\n{}",
                       when, odd.size() == 1 ? "" : "s", fmt::join(odd, ", "), odd.size() == 1 ? "has" : "have",
                       has_majority ? fmt::format("the {} others", numbers.size() - odd.size()) : "one another",
                       advice);
}

std::string find_not_finite(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::string found;
  for_tensors(model, [&](const std::string& name, const torch::Tensor& tensor) {
    if (found.empty() && tensor.is_floating_point() && !torch::isfinite(tensor).all().item<bool>()) found = name;
  });
  return found;
}

}  // namespace tutti
