#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/files.h"
#include "base/median.h"
#include "record/record_reader.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {

using nlohmann::json;

namespace {

constexpr double kClearMajority = 0.5;   // of the exposed time
constexpr double kWorthATry = 0.05;      // of the step
constexpr double kOneRankToBlame = 0.7;  // of the time spent waiting for ranks
constexpr std::size_t kTransfersShown = 3;

/// The first that merges tensors so: what to recommend.
std::string merging_strategy(Merging merging) {
  return first_strategy([=](const Strategy& strategy) { return strategy.merging == merging; }).name;
}

double milliseconds(double seconds) { return seconds * 1e3; }

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string table(const RankBreakdown& mean, bool knows_startup) {
  std::string text = fmt::format("{:<34}{:>12}{:>9}\n", "", "ms per step", "share");
  const auto line = [&](const std::string& name, double s) {
    text += fmt::format("{:<34}{:>12.3f}{:>7.1f} %\n", name, milliseconds(s), percent(s, mean.step_s));
  };
  line("compute (forward, backward)", mean.compute_s);
  line("data wait", mean.data_wait_s);
  line("exposed communication", mean.exposed_s());
  if (mean.exposed_s() > 0) {
    line("  waiting for the slowest rank", mean.slowest_rank_s);
    if (knows_startup) line("  start-up of messages", mean.startup_s);
    line(knows_startup ? "  bandwidth" : "  start-up and bandwidth", mean.bandwidth_s);
    line("  scheduling (threads being woken)", mean.scheduling_s);
  }
  line("optimizer", mean.optimizer_s);
  line("other", mean.other_s);
  line("step", mean.step_s);
  return text;
}

std::string communication(const StepBreakdown& breakdown, const RankBreakdown& mean) {
  if (breakdown.transfers.empty() || mean.comm_s <= 0) return "";
  const double exposed_s = mean.startup_s + mean.bandwidth_s;
  std::string text =
      fmt::format("Communication: {:.3f} ms per step in {} transfer{}, {:.0f} % of it hidden behind computation.\n",
                  milliseconds(mean.comm_s), breakdown.transfers.size(), breakdown.transfers.size() == 1 ? "" : "s",
                  std::clamp(100 - percent(exposed_s, mean.comm_s), 0.0, 100.0));
  std::vector<std::size_t> order(breakdown.transfers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return breakdown.transfers[a].exposed_s > breakdown.transfers[b].exposed_s;
  });
  for (std::size_t i = 0; i < std::min(order.size(), kTransfersShown); ++i) {
    const TransferBreakdown& transfer = breakdown.transfers[order[i]];
    if (transfer.exposed_s <= 0) break;
    text += fmt::format("  {} transfer {} '{}' ({} of {}): {:.3f} of its {:.3f} ms exposed{}\n",
                        i == 0 ? "exposed most:" : "then:        ", order[i], transfer.name, word(transfer.operation),
                        readable_bytes(static_cast<uint64_t>(transfer.bytes)), milliseconds(transfer.exposed_s),
                        milliseconds(transfer.busy_s),
                        transfer.skew_s > transfer.busy_s / 2 ? ", mostly until the last rank came" : "");
  }
  return text;
}

std::string by_rank(const StepBreakdown& breakdown) {
  if (breakdown.ranks.size() < 2) return "";
  std::string text =
      "By rank:                  compute   exposed   waited for others   others waited for it (ms per step)\n";
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    const RankBreakdown& rank = breakdown.ranks[i];
    text += fmt::format("  rank {:<17}{:>10.3f}{:>10.3f}{:>20.3f}{:>23.3f}\n", i, milliseconds(rank.compute_s),
                        milliseconds(rank.exposed_s()), milliseconds(rank.slowest_rank_s), milliseconds(rank.caused_s));
  }
  return text;
}

std::string blame(const std::vector<RankBreakdown>& ranks) {
  double caused_s = 0, compute_s = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    caused_s += ranks[i].caused_s;
    compute_s += ranks[i].compute_s;
    if (ranks[i].caused_s > ranks[worst].caused_s) worst = i;
  }
  const RankBreakdown& rank = ranks[worst];
  const double others_s = (compute_s - rank.compute_s) / static_cast<double>(ranks.size() - 1);
  if (rank.caused_s < kOneRankToBlame * caused_s)
    return "most of the exposed time is waiting for the slowest rank, and ranks take turns at being it: give each rank "
           "a core of its own (fewer --ranks or --threads), and look for other programs on this machine.";
  if (rank.compute_s > 1.05 * others_s)
    return fmt::format(
        "most of the exposed time is waiting for rank {}, which computes slower ({:.3f} ms per step, the others "
        "{:.3f}).",
        worst, milliseconds(rank.compute_s), milliseconds(others_s));
  return fmt::format(
      "most of the exposed time is waiting for rank {}, which comes late though it does not compute slower{}.", worst,
      rank.data_wait_s > 0.1 * rank.step_s ? ": it waits for data, try more --workers" : "");
}

}  // namespace

std::string advice(const StepBreakdown& breakdown, const std::string& wire) {
  const RankBreakdown mean = mean_of(breakdown.ranks);
  const double exposed_s = mean.exposed_s();
  if (mean.data_wait_s > kWorthATry * mean.step_s && mean.data_wait_s > exposed_s)
    return "training waits for data: try more --workers.";
  if (breakdown.ranks.size() < 2) return "";
  if (exposed_s < kWorthATry * mean.step_s)
    return "communication costs little here; only faster computation would make the step shorter.";
  const double enough_s = kClearMajority * exposed_s;
  const Strategy* const strategy = known_strategy(breakdown.strategy);
  if (mean.slowest_rank_s > enough_s) return blame(breakdown.ranks);
  if (mean.startup_s > enough_s) {
    const Merging merging = strategy != nullptr ? strategy->merging : Merging::none;
    const bool is_merged = merging == Merging::by_cost || breakdown.transfers.size() == 1;
    const std::string by_cost = merging_strategy(Merging::by_cost);
    return fmt::format(
        "most of the exposed time is start-up of {} message{}: {}", breakdown.transfers.size(),
        breakdown.transfers.size() == 1 ? "" : "s",
        is_merged ? "a larger --batch or --accumulate has more computation to hide it behind."
        : merging == Merging::by_size
            ? fmt::format("try --strategy {}, which merges as many as the links make worthwhile.", by_cost)
            : fmt::format("try --strategy {} or {}, which merge them.", by_cost, merging_strategy(Merging::by_size)));
  }
  if (mean.bandwidth_s > enough_s) {
    if (strategy != nullptr && !strategy->overlaps_backward)
      return fmt::format("under {} nothing travels before backward is over: try --strategy {}.", strategy->name,
                         merging_strategy(Merging::by_size));
    const auto messages =
        std::count_if(breakdown.transfers.begin(), breakdown.transfers.end(),
                      [](const TransferBreakdown& transfer) { return transfer.operation != Operation::all_gather; });
    if (messages == 1)
      return fmt::format(
          "all gradients travel in one message, which cannot start before backward is nearly over: try a smaller "
          "--bucket-mb, or --strategy {}.",
          merging_strategy(Merging::by_cost));
    return fmt::format(
        "most of the exposed time is {}: {}a larger --batch or --accumulate has more "
        "computation to hide it behind.",
        breakdown.startup_from.empty() ? "the transfers themselves" : "the links' bandwidth",
        wire == "fp32" ? "--wire bf16 halves the bytes (and changes the mathematics); " : "");
  }
  if (mean.scheduling_s > enough_s)
    return "most of the exposed time goes by while threads are being woken: leave the communication thread a core "
           "(fewer --threads).";
  return "";
}

namespace {

std::string advised(const Explanation& explanation) {
  const std::string& wire = explanation.config.wire;
  return advice(explanation.breakdown, wire.empty() ? "fp32" : wire);
}

}  // namespace

Explanation read_explanation(const std::filesystem::path& file) {
  Explanation found;
  std::optional<StepBreakdown> window;
  for (RecordReader reader(file); reader.next();) {
    if (reader.is<RunRecord>()) {  // a resumed run has several: the last one counts
      found = {};
      found.config = reader.as<RunRecord>().parsed;
      window.reset();
    } else if (reader.is<StepBreakdown>()) {
      window = reader.as<StepBreakdown>();
    } else if (reader.is<EpochRecord>()) {
      const auto epoch = reader.as<EpochRecord>();
      found.step_s.insert(found.step_s.end(), epoch.step_s.begin(), epoch.step_s.end());
      found.epochs += !epoch.ranks.empty() && !epoch.ranks[0].own_step_s.empty() ? 1 : 0;
      for (const int rank : epoch.stragglers) ++found.straggled_epochs[rank];
    }
  }
  if (!window)
    throw Error(
        "the records do not say where the time of a step went: the run is older than `tutti explain`, was stopped "
        "before its first epoch was over, or was too short ({} steps). Train again for 10 steps or more.",
        found.step_s.size());
  found.breakdown = *window;
  return found;
}

json to_json(const Explanation& explanation) {
  json stragglers = json::array();
  for (const auto& [rank, slow] : explanation.straggled_epochs)
    stragglers.push_back({{"rank", rank}, {"epochs", slow}, {"of", explanation.epochs}});
  const std::vector<double>& step_s = explanation.step_s;
  StepBreakdown means = explanation.breakdown;  // with one rank, whose parts have their names in it
  means.ranks = {mean_of(explanation.breakdown.ranks)};
  return {{"model", explanation.config.model}, {"breakdown", explanation.breakdown},
          {"mean", json(means)["ranks"][0]},   {"median_step_s", step_s.empty() ? json() : json(upper_median(step_s))},
          {"stragglers", stragglers},          {"advice", advised(explanation)}};
}

std::string describe(const Explanation& explanation) {
  const auto& [config, breakdown, step_s, epochs, slow_epochs] = explanation;
  const RankBreakdown mean = mean_of(breakdown.ranks);

  std::string text = fmt::format("{} on {} rank{}, strategy {}: steps {} to {}, mean over ranks\n\n",
                                 config.model.empty() ? "training" : config.model, breakdown.ranks.size(),
                                 breakdown.ranks.size() == 1 ? "" : "s", breakdown.strategy, breakdown.first_step + 1,
                                 breakdown.first_step + breakdown.steps);
  text += table(mean, !breakdown.startup_from.empty());
  text += "\n";
  if (breakdown.ranks.size() == 1) text += "One rank: nothing is communicated.\n";
  text += communication(breakdown, mean);
  text += by_rank(breakdown);
  if (breakdown.startup_from == "smallest")
    text += fmt::format(
        "Start-up is taken from the smallest transfer, {:.3f} ms: this strategy did not measure the links.\n",
        milliseconds(breakdown.startup_s));
  if (breakdown.is_of_device)
    text += "These are times of the GPU. Marks in the traced steps make them longer than others.\n";
  else if (config.device_used.rfind("cuda", 0) == 0)
    text += "On a GPU these are times of the host and of the communication thread, not of kernels.\n";
  if (!step_s.empty())
    text += fmt::format("Median step of the whole run: {:.3f} ms.\n", milliseconds(upper_median(step_s)));
  for (const auto& [rank, slow] : slow_epochs)
    if (2 * slow > epochs)
      text += fmt::format(
          "Straggler: rank {}. In {} of {} epochs its own part of a step took over 20 % longer than the others', all "
          "along.\n",
          rank, slow, epochs);
  const std::string try_this = advised(explanation);
  if (!try_this.empty()) text += "Advice: " + try_this + "\n";
  return text;
}

}  // namespace tutti
