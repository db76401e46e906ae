// Times the training step of mnist-cnn on one rank, without loader and engine: forward, backward, SGD with momentum.
// Usage: model_step [fused|plain] [steps] [threads]. "plain" is the same network from torch's own layers.

#include <ATen/Parallel.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/malloc_tuning.h"
#include "data/dataset.h"
#include "model/model.h"

namespace {

class PlainCnn : public tutti::Model {
 public:
  PlainCnn()
      : Model("plain"),
        conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)))),
        fc1_(register_module("fc1", torch::nn::Linear(9216, 128))),
        fc2_(register_module("fc2", torch::nn::Linear(128, 10))) {}
  std::vector<torch::Tensor> outputs(const tutti::Batch&) override { return {}; }
  torch::Tensor loss(const tutti::Batch& batch) override {
    torch::Tensor x = torch::relu(conv1_(batch.inputs[0]));
    x = torch::relu(conv2_(x));
    x = torch::dropout(torch::max_pool2d(x, 2), 0.25, true);
    x = torch::relu(fc1_(x.flatten(1)));
    return torch::nll_loss(torch::log_softmax(fc2_(torch::dropout(x, 0.5, true)), 1), batch.target);
  }
  tutti::EvalSums count(const tutti::Batch&) override { return {}; }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "fused";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  at::set_num_threads(argc > 3 ? std::atoi(argv[3]) : 1);
  constexpr int kWarmUp = 10;
  constexpr int kBatch = 64;
  if (kind == "fused") tutti::tune_malloc();
  torch::manual_seed(1);

  const auto train = tutti::open_data({}).train;
  std::vector<tutti::Batch> batches;
  for (int i = 0; i < 20; ++i) {
    batches.push_back(train->make_batch(kBatch, false));
    for (int row = 0; row < kBatch; ++row) train->load(i * kBatch + row, row, batches.back());
  }
  std::shared_ptr<tutti::Model> model;
  if (kind == "fused") {
    model = tutti::make_model("mnist-cnn");
  } else {
    model = std::make_shared<PlainCnn>();
  }
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> total;
  float last_loss = 0;
  std::clock_t cpu_start = 0;
  for (int step = 0; step < kWarmUp + steps; ++step) {
    if (step == kWarmUp) cpu_start = std::clock();
    const auto start = tutti::Clock::now();
    optimizer.zero_grad();
    torch::Tensor loss = model->loss(batches[step % batches.size()]);
    const double after_forward = tutti::seconds_since(start);
    loss.backward();
    const double after_backward = tutti::seconds_since(start);
    optimizer.step();
    if (step < kWarmUp) continue;
    forward.push_back(after_forward);
    backward.push_back(after_backward - after_forward);
    total.push_back(tutti::seconds_since(start));
    last_loss = loss.item<float>();
  }
  const double cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC / steps;
  const auto median_ms = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2] * 1e3;
  };
  const double step_ms = median_ms(total);
  std::printf(
      "%s: median step %.2f ms (forward %.2f, backward %.2f), %.0f samples/s, fastest %.2f ms, CPU %.2f ms, "
      "last loss %.3f\n",
      kind.c_str(), step_ms, median_ms(forward), median_ms(backward), kBatch / step_ms * 1e3, total.front() * 1e3,
      cpu_ms, last_loss);
}
