// Times training steps of one rank as `tutti train` runs them, on one batch that already lies on the device: forward,
// backward and optimizer through the engine, without a loader. Prints one JSON object with samples per second for each
// block of steps. run.py compares it with PyTorch.

#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/malloc_tuning.h"
#include "base/torch_compat.h"
#include "comm/shm/shm.h"
#include "kernel_time.h"
#include "model/example_batch.h"
#include "model/model.h"
#include "tutti/captured_step.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

struct Arguments {
  std::string model = "mnist-cnn";
  ModelOptions options;
  std::vector<int64_t> shape;  // of the data; empty: the model's natural data
  int64_t classes = 0;         // 0: likewise
  int64_t batch = 64;
  std::string precision = "fp32";
  std::string optimizer = "sgd";
  std::string device = "cuda";
  bool contiguous = false;
  bool no_graph = false;
  bool kernel_time = false;
  int kernel_search = 0;
  int warmup = 40;  // the first run eagerly, the next are profiled
  int blocks = 5;
  int steps = 20;
};

void add_options(CLI::App& program, Arguments& arguments) {
  program.add_option("--model", arguments.model);
  program.add_option("--width", arguments.options.width);
  program.add_option("--depth", arguments.options.depth);
  program.add_flag("--checkpoint-activations", arguments.options.checkpoint_activations);
  program.add_option("--shape", arguments.shape, "of a sample, as 3,224,224")->delimiter(',');
  program.add_option("--classes", arguments.classes);
  program.add_option("--batch", arguments.batch);
  program.add_option("--precision", arguments.precision, "fp32, tf32 or bf16");
  program.add_option("--optimizer", arguments.optimizer, "sgd (with momentum) or adam");
  program.add_option("--device", arguments.device, "cpu or cuda");
  program.add_flag("--contiguous", arguments.contiguous, "images and weights not channels-last, whatever is preferred");
  program.add_flag("--no-graph", arguments.no_graph,
                   "queue every kernel by itself instead of repeating a recorded step");
  program.add_flag("--kernel-time", arguments.kernel_time, "also the time for which the GPU was busy in a step");
  program.add_option("--kernel-search", arguments.kernel_search,
                     "of cuDNN's kernels for a convolution so many are tried; 0: its own choice");
  program.add_option("--warmup", arguments.warmup, "steps before the first block");
  program.add_option("--blocks", arguments.blocks);
  program.add_option("--steps", arguments.steps, "of a block");
}

nlohmann::json measure(Arguments& arguments) {
  torch::manual_seed(1);
  const torch::Device device(arguments.device);
  const ComputeStream stream(device);
  const bool is_bf16 = arguments.precision == "bf16";
  allow_tf32(arguments.precision != "fp32");
  at::globalContext().setBenchmarkCuDNN(arguments.kernel_search > 0);
  if (arguments.kernel_search > 0) at::globalContext().setBenchmarkLimitCuDNN(arguments.kernel_search);
  SampleTraits& data = arguments.options.data;
  data = natural_data(arguments.model);
  if (!arguments.shape.empty()) data.shape = arguments.shape;
  if (arguments.classes > 0) data.classes = arguments.classes;
  const auto model = make_model(arguments.model, arguments.options);
  model->to(device);
  model->train();
  Batch batch = example_batch(data, arguments.batch);
  for (torch::Tensor& input : batch.inputs) input = input.to(device);
  batch.target = batch.target.to(device);
  if (device.is_cuda() && arguments.precision != "fp32" && model->prefers_channels_last() && !arguments.contiguous) {
    use_channels_last(*model);
    batch.inputs[0] = batch.inputs[0].contiguous(torch::MemoryFormat::ChannelsLast);
  }

  ShmOptions alone;
  alone.rank = 0;
  alone.size = 1;
  alone.job = fmt::format("throughput-{}", ::getpid());
  alone.progress_thread = false;
  const auto comm = make_shm_communicator(alone);
  TuneOptions options;
  options.optimizer.name = arguments.optimizer;
  if (arguments.optimizer == "sgd") options.optimizer.momentum = 0.9;
  TunedEngine engine(*model, *comm, options);
  CapturedStep captured(engine.engine(), !arguments.no_graph);
  constexpr double kLearningRate = 1e-4;
  torch::Tensor loss;
  const auto run_step = [&] {
    engine.begin_step();
    {
      const Bf16Autocast autocast(is_bf16);
      loss = model->loss(batch);
    }
    engine.backward(loss, 1.0);
    return engine.finish_step(kLearningRate);
  };
  const auto run_steps = [&](int count) {
    for (int i = 0; i < count; ++i) captured.run(kLearningRate, run_step);
    if (device.is_cuda()) torch::cuda::synchronize();
  };
  const auto first_start = Clock::now();
  run_steps(1);
  const double first_step_s = seconds_since(first_start);
  run_steps(std::max(0, arguments.warmup - 1));
  std::vector<double> rates;
  for (int block = 0; block < arguments.blocks; ++block) {
    const auto start = Clock::now();
    run_steps(arguments.steps);
    rates.push_back(static_cast<double>(arguments.batch * arguments.steps) / seconds_since(start));
  }
  nlohmann::json result = {{"samples_per_s", rates},           {"first_step_s", first_step_s},
                           {"last_loss", loss.item<double>()}, {"graph", captured.is_recorded()},
                           {"remark", captured.remark()},      {"memory_bytes", peak_memory()}};
  if (arguments.kernel_time && device.is_cuda())
    result["kernel_s"] = kernel_time([&] { run_steps(arguments.steps); }) / arguments.steps;
  return result;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  tutti::tune_malloc();
  tutti::Arguments arguments;
  CLI::App program("Training throughput of one model on one device.");
  tutti::add_options(program, arguments);
  CLI11_PARSE(program, argc, argv);
  try {
    fmt::print("{}\n", tutti::measure(arguments).dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "model_throughput: {}\n", error.what());
    return 1;
  }
}
