#include "train/evaluation.h"

#include <algorithm>
#include <cstring>

#include "base/torch_compat.h"
#include "comm/exchange.h"
#include "data/loader.h"
#include "data/sampler.h"

namespace tutti {
namespace {

std::vector<int64_t> pack(const EvalCounts& counts) {
  int64_t loss_bits = 0;
  std::memcpy(&loss_bits, &counts.loss_sum, sizeof loss_bits);
  std::vector<int64_t> numbers{counts.samples, loss_bits, counts.loss_terms};
  for (const Metric& metric : counts.metrics) numbers.insert(numbers.end(), {metric.hits, metric.of});
  return numbers;
}

/// The reverse; `counts` has its metrics already.
void unpack(const std::vector<int64_t>& numbers, EvalCounts& counts) {
  counts.samples = numbers[0];
  std::memcpy(&counts.loss_sum, &numbers[1], sizeof counts.loss_sum);
  counts.loss_terms = numbers[2];
  for (std::size_t i = 0; i < counts.metrics.size(); ++i) {
    counts.metrics[i].hits = numbers[3 + 2 * i];
    counts.metrics[i].of = numbers[4 + 2 * i];
  }
}

}  // namespace

Batch to_device(const Batch& batch, const BatchPlace& place) {
  if (place.device.is_cpu()) return batch;
  Batch moved = batch;
  for (torch::Tensor& input : moved.inputs) {
    input = input.to(place.device, /*non_blocking=*/true);
    if (place.channels_last && input.dim() == 4) input = input.contiguous(torch::MemoryFormat::ChannelsLast);
  }
  moved.target = batch.target.to(place.device, /*non_blocking=*/true);
  return moved;
}

std::optional<EvalCounts> evaluate(Model& model, const std::shared_ptr<const Dataset>& data, Communicator& comm,
                                   const EvalOptions& options, const std::function<bool(int64_t, int64_t)>& goes_on) {
  Sampler sampler(data->size(), /*seed=*/0, options.batch, comm.size(), /*shuffle=*/false);
  sampler.begin_epoch(0);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t step = 0; step < sampler.steps(); ++step) batches.push_back(sampler.indices(step, comm.rank()));

  const torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  EvalSums sums{data->traits().kind, {}};
  Loader loader(data, std::move(batches), {options.workers, options.prefetch, options.place.device.is_cuda()});
  bool is_ended = false;
  for (int64_t done = 1; loader.has_next() && !is_ended; ++done) {
    const Batch batch = loader.next();
    if (batch.size > 0) {
      const Bf16Autocast autocast(options.bf16);
      const torch::Tensor numbers = model.count(to_device(batch, options.place)).numbers;
      sums.numbers = sums.numbers.defined() ? sums.numbers.add_(numbers) : numbers;
    }
    is_ended = goes_on && !goes_on(done, sampler.steps());
  }
  model.train(was_training);
  if (is_ended) return std::nullopt;
  const EvalCounts counts = sums.numbers.defined() ? read_counts(sums) : nothing_counted(sums.kind);

  EvalCounts total = nothing_counted(data->traits().kind);
  for (const std::vector<int64_t>& rank : gather_numbers(comm, pack(counts))) {
    EvalCounts part = total;
    unpack(rank, part);
    total.add(part);
  }
  return total;
}

TestResults test_results(const EvalCounts& counts) {
  TestResults results{counts.samples, counts.loss(), {}};
  for (const Metric& metric : counts.metrics) results.metrics.emplace_back(metric.name, metric.value());
  return results;
}

std::string test_headline(const EvalCounts& counts) {
  std::string name = counts.metrics.at(0).name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("test {} {:.4f}", name, counts.metrics[0].value());
}

}  // namespace tutti
