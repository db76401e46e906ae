#include "tutti/metrics.h"

#include "tutti/error.h"

namespace tutti {
namespace {

torch::Tensor count(const torch::Tensor& truths) { return truths.sum(); }

torch::Tensor summed_cross_entropy(const torch::Tensor& logits, const torch::Tensor& target) {
  return torch::cross_entropy_loss(logits.to(torch::kFloat), target, /*weight=*/{}, at::Reduction::Sum);
}

/// Counts in the order that EvalSums has, brought to where `like` lies.
EvalSums sums_of(SampleKind kind, const torch::Tensor& like, const std::vector<torch::Tensor>& counts) {
  std::vector<torch::Tensor> numbers;
  numbers.reserve(counts.size());
  for (const torch::Tensor& one : counts)
    numbers.push_back(one.to(torch::TensorOptions(torch::kDouble).device(like.device())));
  return {kind, torch::stack(numbers)};
}

/// A number that the host knows, where the others are; filled in by a kernel, without a copy that would be waited for.
torch::Tensor constant(int64_t number, const torch::Tensor& like) {
  return torch::full({}, number, torch::TensorOptions(torch::kDouble).device(like.device()));
}

}  // namespace

void EvalCounts::add(const EvalCounts& other) {
  if (metrics.size() != other.metrics.size())
    throw Error("counts of {} and of {} metrics cannot be added", metrics.size(), other.metrics.size());
  samples += other.samples;
  loss_sum += other.loss_sum;
  loss_terms += other.loss_terms;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    metrics[i].hits += other.metrics[i].hits;
    metrics[i].of += other.metrics[i].of;
  }
}

EvalCounts nothing_counted(SampleKind kind) {
  EvalCounts counts;
  switch (kind) {
    case SampleKind::images:
    case SampleKind::sentences:
    case SampleKind::table:
      counts.metrics = {{"accuracy"}};
      break;
    case SampleKind::segmentation:
      counts.metrics = {{"dice"}, {"iou"}};
      break;
    case SampleKind::masked_text:
      counts.metrics = {{"masked_accuracy"}, {"next_sentence_accuracy"}};
      break;
  }
  return counts;
}

EvalCounts read_counts(const EvalSums& sums) {
  EvalCounts counts = nothing_counted(sums.kind);
  const torch::Tensor numbers = sums.numbers.to(torch::kCPU).contiguous();
  if (numbers.numel() != static_cast<int64_t>(3 + 2 * counts.metrics.size()))
    throw Error("{} sums are not those of {} metrics", numbers.numel(), counts.metrics.size());
  const double* const number = numbers.data_ptr<double>();
  counts.samples = static_cast<int64_t>(number[0]);
  counts.loss_sum = number[1];
  counts.loss_terms = static_cast<int64_t>(number[2]);
  for (std::size_t i = 0; i < counts.metrics.size(); ++i) {
    counts.metrics[i].hits = static_cast<int64_t>(number[3 + 2 * i]);
    counts.metrics[i].of = static_cast<int64_t>(number[4 + 2 * i]);
  }
  return counts;
}

EvalSums count_classes(const torch::Tensor& logits, const torch::Tensor& target) {
  const torch::Tensor samples = constant(target.size(0), logits);
  const torch::Tensor none = constant(0, logits);
  const bool any = target.size(0) > 0;
  return sums_of(SampleKind::images, logits,
                 {samples, any ? summed_cross_entropy(logits, target) : none, samples,
                  any ? count(logits.argmax(1).eq(target)) : none, samples});
}

EvalSums count_pixels(const torch::Tensor& logits, const torch::Tensor& target, const torch::Tensor& losses) {
  const torch::Tensor samples = constant(target.size(0), logits);
  const torch::Tensor found = logits.gt(0), wanted = target.gt(0.5);
  const torch::Tensor both = count(found.logical_and(wanted)), sum = count(found) + count(wanted);
  return sums_of(SampleKind::segmentation, logits, {samples, losses.sum(), samples, 2 * both, sum, both, sum - both});
}

EvalSums count_words(const torch::Tensor& word_logits, const torch::Tensor& words, const torch::Tensor& next_logits,
                     const torch::Tensor& next) {
  const torch::Tensor samples = constant(next.size(0), word_logits), masked = count(words.ge(0));
  return sums_of(SampleKind::masked_text, word_logits,
                 {samples, summed_cross_entropy(word_logits, words), masked, count(word_logits.argmax(1).eq(words)),
                  masked, count(next_logits.argmax(1).eq(next)), samples});
}

}  // namespace tutti
