#include "runlog/run_report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/median.h"
#include "runlog/node_report.h"

namespace tutti {
namespace {

double per_second(double samples, double seconds) { return seconds > 0 ? samples / seconds : 0.0; }

/// Of any rank: the slowest one's, where it is a time.
template <typename Rank, typename Base, typename Number>
Number largest(const std::vector<Rank>& ranks, Number Base::*member) {
  Number value = 0;
  for (const Rank& rank : ranks) value = std::max(value, rank.*member);
  return value;
}

}  // namespace

void sum_up(EpochRecord& epoch, const std::vector<Node>& nodes) {
  double samples = 0, loss = 0;
  for (const RankEpoch& rank : epoch.ranks) {
    samples += static_cast<double>(rank.samples);
    loss += rank.loss_sum;
  }
  epoch.train_s = largest(epoch.ranks, &RankTimes::train_s);
  epoch.data_per_s = samples / std::max(epoch.train_s, 1e-9);
  epoch.train_loss = loss / std::max(1.0, samples);
  epoch.stragglers = find_stragglers(epoch.ranks);
  if (epoch.test) epoch.test_s = largest(epoch.ranks, &RankTimes::test_s);
  if (nodes.size() > 1) epoch.nodes = sum_up_by_node(nodes, epoch.ranks);
}

std::vector<double> medians_of_thirds(const std::vector<double>& steps) {
  constexpr std::size_t kThirds = 3, kFewest = 8;  // steps of a third
  if (steps.size() < kThirds * kFewest) return {};
  std::vector<double> medians;
  for (std::size_t third = 0; third < kThirds; ++third) {
    const auto border = [&](std::size_t i) {
      return steps.begin() + static_cast<std::ptrdiff_t>(steps.size() * i / kThirds);
    };
    medians.push_back(upper_median(std::vector<double>(border(third), border(third + 1))));
  }
  return medians;
}

double extra_time(const std::vector<RankEpoch>& ranks, std::size_t rank, std::size_t third) {
  std::vector<double> others;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (i != rank) others.push_back(ranks[i].own_step_s.at(third));
  return ranks[rank].own_step_s.at(third) / std::max(median(std::move(others)), 1e-9) - 1;
}

std::vector<int> find_stragglers(const std::vector<RankEpoch>& ranks) {
  constexpr double kMuch = 0.2;
  std::vector<int> stragglers;
  if (ranks.size() < 2) return stragglers;
  for (const RankEpoch& rank : ranks)
    if (rank.own_step_s.empty() || rank.own_step_s.size() != ranks[0].own_step_s.size()) return stragglers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    bool is_slow = true;
    for (std::size_t third = 0; third < ranks[0].own_step_s.size(); ++third)
      is_slow = is_slow && extra_time(ranks, rank, third) > kMuch;
    if (is_slow) stragglers.push_back(static_cast<int>(rank));
  }
  return stragglers;
}

bool ranks_differ(const std::vector<RankEpoch>& ranks) {
  constexpr double kMuch = 0.2, kTooShort = 0.1;  // a part; seconds, of which nobody wants to know
  const auto own_s = [](const RankEpoch& rank) { return rank.train_s - rank.comm_exposed_s; };
  const auto [least, most] = std::minmax_element(
      ranks.begin(), ranks.end(), [&](const RankEpoch& a, const RankEpoch& b) { return own_s(a) < own_s(b); });
  return least != ranks.end() && own_s(*most) > (1 + kMuch) * own_s(*least) && own_s(*most) > own_s(*least) + kTooShort;
}

std::vector<std::string> epoch_lines(const EpochRecord& epoch, const std::string& headline, bool all) {
  std::vector<std::string> lines = {
      fmt::format("Epoch {} in {:.2f} s: {:.1f} data/s, loss {:.4f}, communication {:.2f} s ({:.2f} s exposed)",
                  epoch.epoch, epoch.train_s, epoch.data_per_s, *epoch.train_loss,
                  largest(epoch.ranks, &RankTimes::comm_s), largest(epoch.ranks, &RankTimes::comm_exposed_s))};
  if (epoch.test) lines[0] += fmt::format(", test time {:.2f} s, {}", *epoch.test_s, headline);
  if (!all && epoch.stragglers.empty() && !ranks_differ(epoch.ranks)) return lines;
  if (epoch.ranks.size() > 1)
    for (std::size_t i = 0; i < epoch.ranks.size(); ++i) {
      const RankEpoch& rank = epoch.ranks[i];
      lines.push_back(
          fmt::format("  rank {}: {} samples, training {:.2f} s, communication {:.2f} s ({:.2f} s exposed), data wait "
                      "{:.2f} s, test {:.2f} s",
                      i, rank.samples, rank.train_s, rank.comm_s, rank.comm_exposed_s, rank.data_wait_s, rank.test_s));
    }
  for (const NodeEpoch& node : epoch.nodes) lines.push_back(node_line(node));
  return lines;
}

SummaryRecord summary_of_ranks(std::vector<RankSummary> ranks, int64_t samples, int64_t steady_samples) {
  SummaryRecord summary;
  for (double RankTimes::*time : {&RankTimes::train_s, &RankTimes::comm_s, &RankTimes::comm_exposed_s,
                                  &RankTimes::data_wait_s, &RankTimes::test_s})
    summary.*time = largest(ranks, time);
  summary.samples = samples;
  summary.samples_per_s = per_second(static_cast<double>(samples), summary.train_s);
  summary.samples_per_s_steady =
      per_second(static_cast<double>(steady_samples), largest(ranks, &RankSummary::steady_s));
  summary.weights_sha256 = ranks[0].weights_sha256;
  summary.peak_rss_bytes = largest(ranks, &RankSummary::peak_rss_bytes);
  summary.optimizer_state_bytes = largest(ranks, &RankSummary::optimizer_state_bytes);
  std::set<std::string> bad;
  for (const RankSummary& rank : ranks) bad.insert(rank.bad_samples.begin(), rank.bad_samples.end());
  summary.bad_samples.assign(bad.begin(), bad.end());
  summary.per_rank = std::move(ranks);
  return summary;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tutti
