#include "model/metrics.h"

#include "tutti/error.h"

namespace tutti {
namespace {

int64_t count(const torch::Tensor& truths) { return truths.sum().item<int64_t>(); }

double summed_cross_entropy(const torch::Tensor& logits, const torch::Tensor& target) {
  return torch::cross_entropy_loss(logits.to(torch::kFloat), target, /*weight=*/{}, at::Reduction::Sum).item<double>();
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

EvalCounts count_classes(const torch::Tensor& logits, const torch::Tensor& target) {
  EvalCounts counts = nothing_counted(SampleKind::images);
  counts.samples = counts.loss_terms = counts.metrics[0].of = target.size(0);
  if (counts.samples == 0) return counts;
  counts.metrics[0].hits = count(logits.argmax(1).eq(target));
  counts.loss_sum = summed_cross_entropy(logits, target);
  return counts;
}

EvalCounts count_pixels(const torch::Tensor& logits, const torch::Tensor& target, const torch::Tensor& losses) {
  EvalCounts counts = nothing_counted(SampleKind::segmentation);
  counts.samples = counts.loss_terms = target.size(0);
  const torch::Tensor found = logits.gt(0), wanted = target.gt(0.5);
  const int64_t both = count(found.logical_and(wanted));
  const int64_t sum = count(found) + count(wanted);
  counts.metrics[0].hits = 2 * both;
  counts.metrics[0].of = sum;
  counts.metrics[1].hits = both;
  counts.metrics[1].of = sum - both;
  counts.loss_sum = losses.sum().item<double>();
  return counts;
}

EvalCounts count_words(const torch::Tensor& word_logits, const torch::Tensor& words, const torch::Tensor& next_logits,
                       const torch::Tensor& next) {
  EvalCounts counts = nothing_counted(SampleKind::masked_text);
  counts.samples = next.size(0);
  const int64_t masked = count(words.ge(0));
  counts.metrics[0].hits = count(word_logits.argmax(1).eq(words));
  counts.metrics[0].of = counts.loss_terms = masked;
  counts.metrics[1].hits = count(next_logits.argmax(1).eq(next));
  counts.metrics[1].of = counts.samples;
  counts.loss_sum = summed_cross_entropy(word_logits, words);
  return counts;
}

}  // namespace tutti
