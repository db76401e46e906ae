// `tutti bench` alone, without libtorch: the real command, and in the place of `tutti train` something that behaves
// like it in a few milliseconds, so that a sweep can be killed often.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "cli/bench_command.h"
#include "record/record_file.h"
#include "tutti/error.h"

namespace {

using namespace tutti;
using nlohmann::json;

struct TrainArguments {
  std::string runs;
  std::string name;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::string strategy = "buckets";
  int batch = 8;
  int ranks = 1;
  int steps = 3;
  double link_gbps = 0;
  double link_startup_us = 0;
  std::string trace;
  bool no_eval = false;
  // What only tests ask for.
  int step_ms = 1;
  int filler = 0;      // bytes of a file beside the records
  std::string manner;  // how it ends
};

void describe(CLI::App& command, TrainArguments& arguments) {
  command.add_option("--runs", arguments.runs);
  command.add_option("--name", arguments.name);
  command.add_option("--model", arguments.model);
  command.add_option("--data", arguments.data);
  command.add_option("--strategy", arguments.strategy);
  command.add_option("--batch", arguments.batch);
  command.add_option("--ranks", arguments.ranks);
  command.add_option("--steps", arguments.steps);
  command.add_option("--link-gbps", arguments.link_gbps);
  command.add_option("--link-startup-us", arguments.link_startup_us);
  command.add_option("--trace", arguments.trace);
  command.add_flag("--no-eval", arguments.no_eval);
  command.add_option("--step-ms", arguments.step_ms);
  command.add_option("--filler", arguments.filler);
  command.add_option("--manner", arguments.manner);
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

int train(const TrainArguments& arguments) {
  const std::filesystem::path folder = std::filesystem::path(arguments.runs) / arguments.name;
  if (std::filesystem::exists(folder / "records.jsonl")) throw UsageError("the run {} exists already", folder.string());
  make_folders(folder);
  write_file_atomically(folder / "pid", std::to_string(::getpid()));
  // Fails once: what it has left elsewhere is there the second time.
  const std::filesystem::path tried = std::filesystem::path(arguments.runs) / ("tried-" + arguments.name);
  if (arguments.manner == "fails-once" && !std::filesystem::exists(tried)) {
    write_file_atomically(tried, "");
    throw Error("rank 0/2, step 1: no luck this time");
  }
  if (arguments.manner == "dies") ::raise(SIGKILL);
  if (arguments.manner == "hangs") sleep_ms(600000);
  RecordFile records(folder / "records.jsonl");
  json ranks = json::array();
  for (int rank = 0; rank < arguments.ranks; ++rank) ranks.push_back(rank);
  records.add("run", {{"config",
                       {{"model", arguments.model},
                        {"data", arguments.data},
                        {"strategy", arguments.strategy},
                        {"batch", arguments.batch},
                        {"accumulate", 1},
                        {"ranks", arguments.ranks},
                        {"wire", "fp32"},
                        {"workers", 1},
                        {"precision", "fp32"}}},
                      {"nodes", {{{"host", "here"}, {"ranks", ranks}}}},
                      {"environment", this_environment("1.2.3")}});
  if (arguments.filler > 0)
    write_file_atomically(folder / "filler", std::string(static_cast<std::size_t>(arguments.filler), 'x'));
  std::vector<double> step_s;
  for (int step = 0; step < arguments.steps; ++step) {
    sleep_ms(arguments.step_ms);
    step_s.push_back(0.001 * (step + 1));
  }
  json rank_times = json::array();
  for (int rank = 0; rank < arguments.ranks; ++rank)
    rank_times.push_back({{"train_s", 1.0}, {"comm_s", 0.25}, {"comm_exposed_s", 0.125}, {"data_wait_s", 0.0}});
  records.add("epoch",
              {{"epoch", 1}, {"train_s", 1.0}, {"train_loss", 0.5}, {"ranks", rank_times}, {"step_s", step_s}});
  if (arguments.manner == "forgets") return 0;
  records.add("summary", {{"steps", arguments.steps}, {"train_s", 1.0}, {"transport", "shm"}, {"device", "cpu"}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("tutti", "tutti");
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as in src/cli/main.cpp
  TrainArguments arguments;
  CLI::App* const fake = program.add_subcommand("train", "");
  describe(*fake, arguments);
  const std::function<int()> bench = add_bench_command(program);
  try {
    program.parse(argc, argv);
    return fake->parsed() ? train(arguments) : bench();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? program.exit(error) : (program.exit(error), 2);
  } catch (const UsageError& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return 1;
  }
}
