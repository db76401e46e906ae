#include "train/evaluation.h"

#include <cstring>

#include "comm/exchange.h"
#include "data/loader.h"
#include "data/sampler.h"

namespace tutti {

Batch to_device(const Batch& batch, torch::Device device) {
  if (device.is_cpu()) return batch;
  Batch moved = batch;
  for (torch::Tensor& input : moved.inputs) input = input.to(device, /*non_blocking=*/true);
  moved.target = batch.target.to(device, /*non_blocking=*/true);
  return moved;
}

EvalCounts evaluate(Model& model, const std::shared_ptr<const Dataset>& data, Communicator& comm,
                    const EvalOptions& options, const std::function<void(int64_t, int64_t)>& progress) {
  Sampler sampler(data->size(), /*seed=*/0, options.batch, comm.size(), /*shuffle=*/false);
  sampler.begin_epoch(0);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t step = 0; step < sampler.steps(); ++step) batches.push_back(sampler.indices(step, comm.rank()));

  const torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  EvalCounts counts;
  Loader loader(data, std::move(batches), {options.workers, options.prefetch, options.device.is_cuda()});
  for (int64_t done = 1; loader.has_next(); ++done) {
    const Batch batch = loader.next();
    if (batch.size > 0) {
      const EvalCounts part = model.evaluate(to_device(batch, options.device));
      counts.samples += part.samples;
      counts.correct += part.correct;
      counts.loss_sum += part.loss_sum;
    }
    if (progress) progress(done, sampler.steps());
  }
  model.train(was_training);

  int64_t loss_bits = 0;
  std::memcpy(&loss_bits, &counts.loss_sum, sizeof loss_bits);
  EvalCounts total;
  for (const auto& rank : gather_numbers(comm, {counts.samples, counts.correct, loss_bits})) {
    total.samples += rank[0];
    total.correct += rank[1];
    double loss_sum = 0;
    std::memcpy(&loss_sum, &rank[2], sizeof loss_sum);
    total.loss_sum += loss_sum;
  }
  return total;
}

}  // namespace tutti
