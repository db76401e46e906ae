// What C++ makes of the network that same_bits.py trains: prints, for each way of training, the weights at the end.
#include <torch/optim/sgd.h>
#include <tutti/job.h>
#include <tutti/tuned_engine.h>

#include <cstdio>

#include "engine/networks.h"

namespace {

using namespace tutti;

void print(const char* how, const std::string& strategy, const OddNetwork& model) {
  std::printf("%s %s", how, strategy.c_str());
  for (const auto& item : model.named_parameters()) {
    const torch::Tensor values = item.value().detach().contiguous();
    for (int64_t i = 0; i < values.numel(); ++i) std::printf(" %a", static_cast<double>(values.data_ptr<float>()[i]));
  }
  std::printf("\n");
}

void train(Job& job, const std::string& strategy, const std::string& optimizer) {
  torch::manual_seed(5);
  OddNetwork model;
  TuneOptions options;
  options.strategy = strategy;
  options.updates_parameters = optimizer != "torch";
  if (options.updates_parameters) options.optimizer.name = optimizer;
  options.optimizer.momentum = 0.9;
  options.strategy_options.bucket_bytes = 200;
  options.strategy_options.first_bucket_bytes = 100;
  if (job.size() > 1 && find_strategy(strategy).uses_servers) options.servers = &job.parameter_servers();
  TunedEngine engine(model, job.communicator(), options);
  torch::optim::SGD outer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 0; step < 8; ++step) {
    const Samples samples = make_samples((step * job.size() + job.rank()) * 4, 4);
    if (!options.updates_parameters) outer.zero_grad();
    engine.begin_step();
    engine.backward(model.loss(samples.x, samples.y, step % 2 == 1), 1.0 / job.size());
    engine.finish_step(0.05);
    if (!options.updates_parameters) outer.step();
  }
  engine.settle();
  if (job.rank() == 0) print(optimizer.c_str(), strategy, model);
}

}  // namespace

int main() try {
  Job job = Job::from_environment();
  for (const char* const optimizer : {"sgd", "adam", "torch"})
    for (const char* const strategy : {"bsp", "wfbp", "zero1", "wfbp-ps"}) train(job, strategy, optimizer);
  job.finish();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "reference: %s\n", error.what());
  return 1;
}
