#include "tune/strategy_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/median.h"

namespace tutti {
namespace {

/// Differences that cannot be told from noise: then the candidate that the simulation likes better stays.
constexpr double kEqual = 0.01;

constexpr int kRoundsToJudge = 4;  // fewer say nothing about how far they scatter

/// How many candidates go on: time is better spent on telling the best apart than on all alike.
std::size_t kept_after(int rounds) { return rounds < 4 ? SIZE_MAX : rounds < 8 ? 4 : rounds < 14 ? 3 : 2; }

}  // namespace

double SearchCandidate::step_s() const { return lower_median(measured_s); }

SearchRatio compare(const SearchCandidate& candidate, const SearchCandidate& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < std::min(candidate.measured_s.size(), other.measured_s.size()); ++round)
    ratios.push_back(candidate.measured_s[round] / other.measured_s[round]);
  const double median = (lower_median(ratios) + upper_median(ratios)) / 2;
  double deviation = 0;
  for (const double ratio : ratios) deviation += std::abs(ratio - median);
  const auto count = static_cast<double>(ratios.size());
  // Of a normal distribution, 1.25 mean deviations are a standard deviation, and a median scatters 1.25 times as far as
  // a mean.
  return {median, 1.25 * 1.25 * deviation / count / std::sqrt(count)};
}

StrategySearch::StrategySearch(std::vector<SearchCandidate> candidates, const SearchOptions& options)
    : candidates_(std::move(candidates)), options_(options), in_window_(-options.settling_steps) {}

bool StrategySearch::step_done(double now_s) {
  ++steps_;
  ++in_window_;
  if (in_window_ == 0) parts_s_.clear();
  if (in_window_ >= 0 && in_window_ % options_.part_steps == 0) {
    if (in_window_ > 0) parts_s_.push_back((now_s - part_start_s_) / static_cast<double>(options_.part_steps));
    part_start_s_ = now_s;
  }
  return in_window_ >= (is_over_ ? options_.watch_steps : options_.window_steps) &&
         in_window_ % options_.part_steps == 0;
}

double StrategySearch::window_step_s() const { return lower_median(parts_s_); }

void StrategySearch::window_took(double step_s) {
  in_window_ = -1;  // that ranks agree has held this step up
  if (is_over_) {
    const bool is_strange = std::abs(step_s / current().step_s() - 1) > options_.drift_threshold;
    strange_windows_ = is_strange ? strange_windows_ + 1 : 0;
    return;
  }
  candidates_[current_].measured_s.push_back(step_s);
  next_candidate();
}

void StrategySearch::next_candidate() {
  const std::size_t before = current_;
  const bool backward = round_ % 2 == 1;
  do current_ += backward ? -1 : 1;  // below 0 is a very large number
  while (current_ < candidates_.size() && candidates_[current_].is_dropped);
  if (current_ >= candidates_.size()) end_round();
  if (current_ != before) in_window_ = -options_.settling_steps;
}

void StrategySearch::end_round() {
  ++round_;
  std::vector<SearchCandidate*> left;
  for (SearchCandidate& candidate : candidates_)
    if (!candidate.is_dropped) left.push_back(&candidate);
  const SearchCandidate* best = left.front();
  for (const SearchCandidate* candidate : left)
    if (compare(*candidate, *best).ratio < 1 - kEqual) best = candidate;
  std::stable_sort(left.begin(), left.end(), [&](const SearchCandidate* a, const SearchCandidate* b) {
    return compare(*a, *best).ratio < compare(*b, *best).ratio;
  });
  std::size_t kept = 1;  // the best
  bool is_known = round_ >= kRoundsToJudge;
  for (SearchCandidate* candidate : left) {
    if (candidate == best) continue;
    const SearchRatio to_best = compare(*candidate, *best);
    const double most = round_ < kRoundsToJudge ? options_.drop_threshold / round_ : kEqual + 2 * to_best.error;
    candidate->is_dropped = kept >= kept_after(round_) || to_best.ratio > 1 + most;
    if (candidate->is_dropped) continue;
    ++kept;
    is_known = is_known && to_best.error <= kEqual;
  }
  const int64_t next_round = static_cast<int64_t>(kept) * (options_.settling_steps + options_.window_steps);
  is_over_ = kept == 1 || is_known || round_ == options_.rounds || steps_ + next_round > options_.steps;
  current_ = static_cast<std::size_t>(best - candidates_.data());
  if (is_over_) return;
  const bool backward = round_ % 2 == 1;
  current_ = backward ? candidates_.size() - 1 : 0;
  while (candidates_[current_].is_dropped) current_ += backward ? -1 : 1;
}

void StrategySearch::disturb() { in_window_ = -options_.settling_steps; }

}  // namespace tutti
