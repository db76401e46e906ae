#include "engine/strategy_search.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace tutti {
namespace {

/// Differences that cannot be told from noise: then the candidate that the simulation likes better stays.
constexpr double kEqual = 0.01;

}  // namespace

double SearchCandidate::step_s() const { return lower_median(measured_s); }

StrategySearch::StrategySearch(std::vector<SearchCandidate> candidates, const SearchOptions& options)
    : candidates_(std::move(candidates)), options_(options), in_window_(-options.settling_steps) {}

bool StrategySearch::step_done() {
  ++steps_;
  return ++in_window_ == window_steps();
}

void StrategySearch::window_took(double seconds) {
  const double step_s = seconds / static_cast<double>(window_steps());
  in_window_ = 0;
  if (is_over_) {
    const bool is_strange = std::abs(step_s / current().step_s() - 1) > options_.drifts;
    strange_windows_ = is_strange ? strange_windows_ + 1 : 0;
    return;
  }
  candidates_[current_].measured_s.push_back(step_s);
  next_candidate();
}

void StrategySearch::next_candidate() {
  const std::size_t before = current_;
  do ++current_;
  while (current_ < candidates_.size() && candidates_[current_].is_dropped);
  if (current_ >= candidates_.size()) {  // the round is over
    ++round_;
    std::size_t best = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (!candidates_[i].is_dropped &&
          (candidates_[best].is_dropped || candidates_[i].step_s() < candidates_[best].step_s() * (1 - kEqual)))
        best = i;
    const double most_s = candidates_[best].step_s() * (1 + options_.drops / round_);
    int left = 0;
    for (SearchCandidate& candidate : candidates_) {
      candidate.is_dropped = candidate.is_dropped || candidate.step_s() > most_s;
      left += candidate.is_dropped ? 0 : 1;
    }
    is_over_ = left == 1 || round_ == options_.rounds;
    current_ = best;
    if (!is_over_)
      for (current_ = 0; candidates_[current_].is_dropped;) ++current_;
  }
  if (current_ != before) in_window_ = -options_.settling_steps;
}

void StrategySearch::disturb() { in_window_ = -options_.settling_steps; }

}  // namespace tutti
