// A recurrent network learns to tell whether a sequence of signs has more ups than downs.
#include <torch/nn/functional.h>
#include <torch/nn/modules.h>
#include <tutti/error.h>
#include <tutti/job.h>
#include <tutti/tuned_engine.h>

#include <cstdio>
#include <utility>

namespace {

struct Counter : torch::nn::Module {
  torch::nn::GRU gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(1, 16).batch_first(true)));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(16, 2));
  torch::Tensor forward(const torch::Tensor& signs) {
    return head(std::get<0>(gru->forward(signs)).select(/*dim=*/1, /*index=*/-1));
  }
};

std::pair<torch::Tensor, torch::Tensor> make_batch(int64_t size) {
  const torch::Tensor signs = torch::rand({size, 9, 1}).sub(0.5).sign();
  return {signs, (signs.sum({1, 2}) > 0).to(torch::kInt64)};
}

}  // namespace

int main() try {
  tutti::Job job = tutti::Job::from_environment();
  Counter network;
  tutti::TuneOptions options;
  options.strategy = "mgwfbp";
  options.optimizer.name = "adamw";
  tutti::TunedEngine engine(network, job.communicator(), options);

  torch::manual_seed(static_cast<uint64_t>(job.rank()) + 1);  // other samples on every rank
  for (int step = 0; step < 150; ++step) {
    const auto [signs, answers] = make_batch(32);
    engine.begin_step();
    engine.backward(torch::nn::functional::cross_entropy(network.forward(signs), answers), 1.0 / job.size());
    engine.finish_step(/*learning_rate=*/0.02);
  }
  engine.settle();

  const auto [signs, answers] = make_batch(2000);
  const double accuracy = (network.forward(signs).argmax(1) == answers).to(torch::kFloat32).mean().item<double>();
  if (job.rank() == 0) std::printf("%d ranks: accuracy %.3f\n", job.size(), accuracy);
  return accuracy > 0.95 ? 0 : 1;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "own_model: %s\n", error.what());
  return 1;
}
