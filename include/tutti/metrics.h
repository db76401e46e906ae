#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/samples.h"

namespace tutti {

/// A share, as the two whole numbers it is made of: exact when added over batches and ranks.
struct Metric {
  std::string name;
  int64_t hits = 0;
  int64_t of = 0;
  double value() const { return of > 0 ? static_cast<double>(hits) / static_cast<double>(of) : 0; }
};

/// What evaluation counts; sums, so that batches and ranks can be added up.
struct EvalCounts {
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t loss_terms = 0;       // what loss_sum is to be divided by: samples, or words to be guessed
  std::vector<Metric> metrics;  // the model is judged by the first

  double loss() const { return loss_terms > 0 ? loss_sum / static_cast<double>(loss_terms) : 0; }
  /// `other` counts the same metrics.
  void add(const EvalCounts& other);
};

/// Zero of everything that is counted for this kind of samples:
/// images, sentences and tables `accuracy`; segmentation `dice` and `iou`; masked text `masked_accuracy` and
/// `next_sentence_accuracy`.
EvalCounts nothing_counted(SampleKind kind);

/// The same sums on the device that computes, where batches are added up; the host need not wait for any of them.
struct EvalSums {
  SampleKind kind = SampleKind::images;
  torch::Tensor numbers;  // float64: samples, loss_sum, loss_terms, then hits and `of` of each metric
};

/// Waits for the device.
EvalCounts read_counts(const EvalSums& sums);

/// For images, sentences and tables. `logits` [n, classes], `target` [n].
EvalSums count_classes(const torch::Tensor& logits, const torch::Tensor& target);

/// For segmentation: over all pixels, those above 0 in `logits` against those above 0.5 in `target`, both
/// [n, 1, height, width]; `losses` is [n].
EvalSums count_pixels(const torch::Tensor& logits, const torch::Tensor& target, const torch::Tensor& losses);

/// For masked text. `word_logits` [entries, vocabulary] and `words` [entries], -100 for those that do not count;
/// `next_logits` [n, 2] and `next` [n]. The loss is that of the words.
EvalSums count_words(const torch::Tensor& word_logits, const torch::Tensor& words, const torch::Tensor& next_logits,
                     const torch::Tensor& next);

}  // namespace tutti
