#include "fuzz/fuzz.h"
#include "sweep/cells.h"
#include "sweep/sweep.h"

namespace tutti::fuzz {

static std::string fuzz_sweep(std::string_view input) {
  static const std::vector<std::string> kOptions{"--model", "--batch", "--ranks", "--steps"};
  return outcome([&] { sweep::expand(sweep::parse_sweep(std::string(input), "s", input.size() % 2 == 0, kOptions)); });
}

static std::vector<std::string> sweep_seeds() {
  return {
      "title: t\naxes: {model: [a, b], ranks: [1, 2]}\nleave-out: [{model: a, ranks: 2}]\nbaseline: {ranks: 1}\n",
      "axes:\n  network: [slow]\n  nodes: [1, 2]\n  ranks: 2\nnetworks: {slow: {gbps: 1.5, startup-us: 20, note: x}}\n",
      "axes: {batch: [1, 2, 3]}\nwhere:\n  - {when: {batch: [1, 2]}, set: {steps: 3}}\nrepeats: 2\ncompare: batch\n",
      "axes: {ranks: [1]}\nquick:\n  axes: {ranks: [1, 2]}\n  trace: true\n  timeout-minutes: 0.5\n",
      "axes: {ranks: 1e9}\nwarmup-steps: 1e300\n",
      "axes: &a {ranks: [1]}\nquick: {axes: *a}\n",
      "[[[[{{{{"};
}

static const Target kSweep("sweep", fuzz_sweep, sweep_seeds);

}  // namespace tutti::fuzz
