#pragma once

#include <algorithm>
#include <vector>

#include "base/trace.h"

namespace tutti {

/// Writes down what a simulated rank does in a step, as a measured trace has it; nothing unless it was asked to.
class Timeline {
 public:
  explicit Timeline(bool is_recording) : is_recording_(is_recording) {}

  void computed(TraceKind kind, int step, double begin_s, double end_s) {
    if (is_recording_) trace_.compute.push_back({kind, -1, step, ns(begin_s), ns(end_s), 0, 0});
  }
  /// Of several under way, the time belongs to the oldest: what is recorded does not overlap.
  void transferred(std::size_t transfer, int step, double begin_s, double end_s) {
    if (!is_recording_) return;
    const int64_t begin = std::max(ns(begin_s), last_end_ns_);
    last_end_ns_ = ns(end_s);
    trace_.communication.push_back(
        {TraceKind::transfer, static_cast<int>(transfer), step, begin, last_end_ns_, ns(begin_s), begin});
  }
  /// A new step: what was written down of the one before goes.
  void clear() { trace_ = {}; }
  const RankTrace& trace() const { return trace_; }

 private:
  static int64_t ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

  bool is_recording_;
  int64_t last_end_ns_ = 0;
  RankTrace trace_;
};

}  // namespace tutti
