#include "train/run_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/node_report.h"
#include "train/rank_times.h"

namespace tutti {
namespace {

using nlohmann::json;

double per_second(double samples, double seconds) { return seconds > 0 ? samples / seconds : 0.0; }

double sum(const std::vector<json>& ranks, const char* key) {
  double total = 0;
  for (const json& rank : ranks) total += rank.at(key).get<double>();
  return total;
}

struct Totals {
  double train_s = 0, data_per_s = 0, mean_loss = 0;
};

Totals totals_of(const EpochResult& result) {
  const double samples = sum(result.ranks, "samples");
  const double train_s = largest(result.ranks, "train_s");
  return {train_s, samples / std::max(train_s, 1e-9), sum(result.ranks, "loss_sum") / std::max(1.0, samples)};
}

}  // namespace

std::vector<std::string> epoch_lines(const EpochResult& result) {
  const std::vector<json>& ranks = result.ranks;
  const Totals totals = totals_of(result);
  std::vector<std::string> lines = {fmt::format(
      "Epoch {} in {:.2f} s: {:.1f} data/s, loss {:.4f}, communication {:.2f} s ({:.2f} s exposed)", result.epoch,
      totals.train_s, totals.data_per_s, totals.mean_loss, largest(ranks, "comm_s"), largest(ranks, "comm_exposed_s"))};
  if (result.test != nullptr)
    lines[0] += fmt::format(", test time {:.2f} s, {}", largest(ranks, "test_s"), test_headline(*result.test));
  if (ranks.size() > 1)
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      lines.push_back(
          fmt::format("  rank {}: {} samples, training {:.2f} s, communication {:.2f} s ({:.2f} s exposed), data wait "
                      "{:.2f} s, test {:.2f} s",
                      rank, ranks[rank].at("samples").get<int64_t>(), ranks[rank].at("train_s").get<double>(),
                      ranks[rank].at("comm_s").get<double>(), ranks[rank].at("comm_exposed_s").get<double>(),
                      ranks[rank].at("data_wait_s").get<double>(), ranks[rank].at("test_s").get<double>()));
  if (result.nodes.size() > 1)
    for (const json& node : sum_up_by_node(result.nodes, ranks)) lines.push_back(node_line(node));
  return lines;
}

json epoch_record(const EpochResult& result) {
  const Totals totals = totals_of(result);
  json record = {{"epoch", result.epoch},          {"step", result.step},
                 {"train_s", totals.train_s},      {"data_per_s", totals.data_per_s},
                 {"train_loss", totals.mean_loss}, {"ranks", result.ranks}};
  if (result.test != nullptr) {
    record.update(test_results(*result.test));
    record["test_s"] = largest(result.ranks, "test_s");
  }
  if (result.nodes.size() > 1) record["nodes"] = sum_up_by_node(result.nodes, result.ranks);
  return record;
}

json summary_of_ranks(const std::vector<json>& ranks, int64_t samples, int64_t steady_samples) {
  const double train_s = largest(ranks, "train_s");
  return {{"samples", samples},
          {"samples_per_s", per_second(static_cast<double>(samples), train_s)},
          {"samples_per_s_steady", per_second(static_cast<double>(steady_samples), largest(ranks, "steady_s"))},
          {"train_s", train_s},
          {"comm_s", largest(ranks, "comm_s")},
          {"comm_exposed_s", largest(ranks, "comm_exposed_s")},
          {"data_wait_s", largest(ranks, "data_wait_s")},
          {"test_s", largest(ranks, "test_s")},
          {"weights_sha256", ranks[0].at("weights_sha256")},
          {"peak_rss_bytes", static_cast<int64_t>(largest(ranks, "peak_rss_bytes"))},
          {"optimizer_state_bytes", static_cast<int64_t>(largest(ranks, "optimizer_state_bytes"))},
          {"per_rank", ranks}};
}

}  // namespace tutti
