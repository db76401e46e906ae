// A sweep file goes in; out comes what `tutti bench` would run.
#include "fuzz/command.h"

namespace tutti::fuzz {

static std::string fuzz_sweep_file(std::string_view input) {
  write_input(input, {"sweep.yaml"});
  const std::string file = (command_folder() / "sweep.yaml").string(), to = (command_folder() / "never").string();
  return command_outcome({"bench", file, "--dry-run", "-o", to}) +
         command_outcome({"bench", file, "--dry-run", "--quick", "-o", to, "--hosts", "a:2,b:2"});
}

static std::vector<std::string> sweep_file_seeds() {
  return {
      "title: t\naxes: {model: [mnist-cnn, resnet18], ranks: [1, 2]}\nleave-out: [{model: resnet18, ranks: "
      "2}]\nbaseline: "
      "{ranks: 1}\n",
      "axes:\n  network: [slow]\n  nodes: [1, 2]\n  ranks: 2\nnetworks: {slow: {gbps: 1.5, startup-us: 20, note: x}}\n",
      "axes: {batch: [1, 2, 3]}\nwhere:\n  - {when: {batch: [1, 2]}, set: {steps: 3}}\nrepeats: 2\ncompare: batch\n",
      "axes: {ranks: [1]}\nquick:\n  axes: {ranks: [1, 2]}\n  trace: true\n  timeout-minutes: 0.5\n",
      "options: {hosts: -oProxyCommand=x, trace: ../x}\n",
      "axes: &a {ranks: [1]}\nquick: {axes: *a}\n",
      "[[[[{{{{",
      "1e9"};
}

static const Target kSweepFile("sweep_file", fuzz_sweep_file, sweep_file_seeds);

}  // namespace tutti::fuzz
