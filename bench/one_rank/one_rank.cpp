// What a strategy costs a lone rank, which has nobody to synchronize with: steps of every strategy beside a plain loop
// without Tutti (backward, torch::optim::SGD), in one process, a few steps of each in turn. Prints a Markdown table of
// ratios to the plain loop, median over rounds.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "base/malloc_tuning.h"
#include "comm/shm/shm.h"
#include "model/example_batch.h"
#include "model/model.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

struct Arguments {
  std::string model = "mnist-cnn";
  int64_t batch = 32;
  int rounds = 301;
  int steps = 1;
};

struct Contender {
  std::string name;
  std::function<void()> step;
  std::vector<double> seconds;  // of each round
};

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

void measure(const Arguments& arguments) {
  at::set_num_threads(1);
  ModelOptions model_options;
  model_options.data = natural_data(arguments.model);
  const Batch batch = example_batch(model_options.data, arguments.batch);
  const auto new_model = [&] {
    torch::manual_seed(1);
    auto model = make_model(arguments.model, model_options);
    model->train();
    return model;
  };

  ShmOptions alone;
  alone.rank = 0;
  alone.size = 1;
  alone.job = fmt::format("one-rank-{}", ::getpid());
  alone.progress_thread = false;
  const auto comm = make_shm_communicator(alone);

  std::vector<Contender> contenders;
  const auto add_plain = [&](const char* name) {
    const auto model = new_model();
    const auto optimizer =
        std::make_shared<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
    contenders.push_back({name,
                          [model, optimizer, &batch] {
                            optimizer->zero_grad();
                            model->loss(batch).backward();
                            optimizer->step();
                          },
                          {}});
  };
  add_plain("no Tutti");
  for (const std::string& strategy : strategy_names()) {
    if (find_strategy(strategy).uses_servers) continue;
    TuneOptions options;
    options.strategy = strategy;
    options.optimizer.momentum = 0.9;
    const auto model = new_model();
    const auto engine = std::make_shared<TunedEngine>(*model, *comm, options);
    contenders.push_back({strategy,
                          [model, engine, &batch] {
                            engine->begin_step();
                            engine->backward(model->loss(batch), 1.0);
                            engine->finish_step(1e-3);
                          },
                          {}});
  }
  add_plain("no Tutti, again");

  for (int round = -1; round < arguments.rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + static_cast<std::size_t>(round + 1)) % contenders.size()];
      const auto start = Clock::now();
      for (int step = 0; step < arguments.steps; ++step) contender.step();
      if (round >= 0) contender.seconds.push_back(seconds_since(start) / arguments.steps);  // the first warms up
    }

  fmt::print("{}, batch {}, 1 thread, {} rounds of {} steps\n\n", arguments.model, arguments.batch, arguments.rounds,
             arguments.steps);
  fmt::print("| strategy | ms/step, median | over no Tutti, median | quartiles |\n|---|---|---|---|\n");
  for (const Contender& contender : contenders) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < contender.seconds.size(); ++round)
      ratios.push_back(contender.seconds[round] / contenders[0].seconds[round]);
    fmt::print("| {} | {:.2f} | {:.3f} | {:.3f} to {:.3f} |\n", contender.name, 1e3 * quantile(contender.seconds, 0.5),
               quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
  }
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  tutti::tune_malloc();
  tutti::Arguments arguments;
  CLI::App program("What each strategy costs a lone rank.");
  program.add_option("--model", arguments.model)->capture_default_str();
  program.add_option("--batch", arguments.batch)->capture_default_str();
  program.add_option("--rounds", arguments.rounds)->capture_default_str();
  program.add_option("--steps", arguments.steps, "of each strategy in a round")->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  try {
    tutti::measure(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "one_rank: {}\n", error.what());
    return 1;
  }
}
