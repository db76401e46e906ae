// A network, data and training loop of one's own on Tutti: include <tutti/…>, link Tutti::tutti.
// Start it alone, or on several ranks: mpirun -n 2 ./own_loop zero1
#include <torch/nn/functional.h>
#include <torch/nn/modules.h>
#include <tutti/error.h>
#include <tutti/job.h>
#include <tutti/tuned_engine.h>

#include <cstdio>

int main(int argc, char** argv) try {
  tutti::Job job = tutti::Job::from_environment();
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Linear(64, 1));

  tutti::TuneOptions options;
  options.strategy = argc > 1 ? argv[1] : "wfbp";
  options.optimizer.name = "adam";
  tutti::TunedEngine engine(*net, job.communicator(), options);

  // Is a point inside the unit circle? Every rank draws other points.
  torch::manual_seed(static_cast<uint64_t>(job.rank()));
  torch::Tensor loss;
  for (int step = 0; step < 300; ++step) {
    const torch::Tensor points = torch::rand({64, 2}) * 3 - 1.5;
    const torch::Tensor inside = (points.pow(2).sum(1, /*keepdim=*/true) < 1).to(torch::kFloat32);
    engine.begin_step();
    loss = torch::nn::functional::binary_cross_entropy_with_logits(net->forward(points), inside);
    engine.backward(loss, 1.0 / job.size());  // what this rank's points count in the whole batch
    engine.finish_step(/*learning_rate=*/0.01);
  }
  engine.settle();

  const torch::Tensor points = torch::rand({4096, 2}) * 3 - 1.5;
  const torch::Tensor inside = points.pow(2).sum(1, true) < 1;
  const double accuracy = ((net->forward(points) > 0) == inside).to(torch::kFloat32).mean().item<double>();
  if (job.rank() == 0)
    std::printf("%d ranks, strategy %s: accuracy %.3f\n", job.size(), options.strategy.c_str(), accuracy);
  return accuracy > 0.9 ? 0 : 1;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "own_loop: %s\n", error.what());
  return 1;
}
