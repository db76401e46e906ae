// A recipe goes in; out come the options that `tutti train --recipe FILE` would train with, checked. Nothing in it may
// say where files are written.
#include <nlohmann/json.hpp>

#include <stdexcept>

#include "cli/option_arguments.h"
#include "cli/recipe.h"
#include "fuzz/command.h"
#include "launch/mpirun.h"
#include "train/options.h"

namespace tutti::fuzz {

static std::string fuzz_train_options(std::string_view input) {
  write_input(input, {"recipe.yaml"});
  return outcome([&] {
    std::vector<std::string> words =
        expand_recipe({"train", "--recipe", (command_folder() / "recipe.yaml").string(), "--log-every=7"});
    CLI::App program("tutti", "tutti");
    program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    TrainOptions options;
    const TrainOptions usual;
    add_options(*program.add_subcommand("train"), train_option_table(options, known_names()));
    try {
      program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      throw UsageError("{}", error.what());
    }
    check_options(options);
    if (!options.hosts.empty()) count_slots(options.hosts);
    if (options.runs_folder != usual.runs_folder || !options.trace_file.empty() || !options.summary_file.empty() ||
        !options.resume.empty() || options.name.find('/') != std::string::npos || options.log_every != 7)
      throw std::logic_error("a recipe has said what only a command line may");
    describe_options(options).dump();  // what cannot be written is refused before
  });
}

static std::vector<std::string> train_options_seeds() {
  return {"about: A test\nmodel: resnet18\nbatch: 128\nscale-lr: true\n",
          "hosts: a:2,b:2\nname: x\nstrategy: auto\nwire: topk\ntopk-ratio: 0.1\n",
          "trace: ../x\nruns: /tmp\nsummary: y\nresume: z\n",
          "hosts: -oProxyCommand=x\n",
          "name: \"\\xff\"\ndata-folder: ../../etc\nlr: 1e300\nepochs: 99999999999999999999\n",
          "model: &a resnet18\ndata: *a\n",
          "? batch\n: |\n  3\n",
          "no-augment: true\nno-eval: yes\nbucket-mb: nan\n"};
}

static const Target kTrainOptions("train_options", fuzz_train_options, train_options_seeds);

}  // namespace tutti::fuzz
