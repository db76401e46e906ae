#include "report/step_breakdown.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/median.h"

namespace tutti {
namespace {

// Every moment in which a rank's computation waits is given to what its communication thread did then. A transfer's
// time is cut at two points: when the last rank handed it to the communicator (`all_there`), and a start-up time later.
// Before the first cut it waits for the slowest rank, between them it starts up, after them its bytes travel. What
// belongs to no transfer and no update is scheduling. So the parts of a wait add up to it, whatever was measured.

// A message this small takes about as long as an empty one.
constexpr int64_t kSmallBytes = 64 << 10;

struct Interval {
  int64_t begin, end;
};

int64_t overlap(const Interval& a, const Interval& b) {
  return std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

Interval interval_of(const TraceEvent& event) { return {event.begin_ns, event.end_ns}; }

/// When, and by which rank, a transfer of one step was handed to the communicator last.
struct LastArrival {
  std::size_t ranks = 0;
  std::size_t slowest = 0;
  int64_t all_there_ns = 0;
};
using Arrivals = std::map<std::pair<int64_t, int>, LastArrival>;  // by step and transfer

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Arrivals find_arrivals(const std::vector<RankTrace>& ranks) {
  Arrivals arrivals;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const TraceEvent& event : ranks[rank].communication) {
      if (event.kind != TraceKind::transfer) continue;
      LastArrival& arrival = arrivals[{event.step, event.index}];
      if (arrival.ranks++ == 0 || event.issued_ns > arrival.all_there_ns) {
        arrival.all_there_ns = event.issued_ns;
        arrival.slowest = rank;
      }
    }
  return arrivals;
}

/// The part of the transfer that waits for the last rank; starts on this rank when it is issued.
Interval skew_of(const TraceEvent& transfer, const Arrivals& arrivals) {
  const int64_t all_there = arrivals.at({transfer.step, transfer.index}).all_there_ns;
  return {transfer.issued_ns, std::clamp(all_there, transfer.issued_ns, std::max(transfer.issued_ns, transfer.end_ns))};
}

/// An all_reduce or push_pull counts whole, the halves of an all_reduce half each.
double share_of_startup(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather ? 0.5 : 1;
}

void find_startup(const std::vector<RankTrace>& ranks, const Plan& plan, const std::optional<Links>& links,
                  const Arrivals& arrivals, StepBreakdown& result) {
  if (links) {
    result.startup_s = (plan.servers > 0 ? links->push_pull : links->all_reduce).startup_s;
    result.startup_from = "links";
    return;
  }
  std::map<int, std::vector<double>> times;  // by transfer
  for (const RankTrace& rank : ranks)
    for (const TraceEvent& event : rank.communication)
      if (event.kind == TraceKind::transfer)
        times[event.index].push_back(seconds(event.end_ns - skew_of(event, arrivals).end));
  for (const auto& [index, samples] : times) {
    const Transfer& transfer = plan.transfers[static_cast<std::size_t>(index)];
    if (transfer.elements() * static_cast<int64_t>(sizeof(float)) > kSmallBytes) continue;
    const double startup_s = upper_median(samples) / share_of_startup(transfer.operation);
    if (result.startup_from.empty() || startup_s < result.startup_s) result.startup_s = startup_s;
    result.startup_from = "smallest";
  }
}

/// Adds up one rank's window.
class RankSum {
 public:
  RankSum(const RankTrace& trace, const Plan& plan, const Arrivals& arrivals, const std::set<int64_t>& steps,
          StepBreakdown& result, std::size_t rank)
      : trace_(trace), plan_(plan), arrivals_(arrivals), steps_(steps), result_(result), sum_(result.ranks[rank]) {}

  void add_up() {
    for (const TraceEvent& event : trace_.compute)
      if (event.kind == TraceKind::step && steps_.count(event.step) > 0) add_step(event);
    // Where transfers cross the end of a step, its waits are for the transfers of the step before.
    const int64_t later = plan_.barrier == Barrier::next_forward ? 1 : 0;
    for (const TraceEvent& event : trace_.communication) {
      if (event.kind != TraceKind::transfer || steps_.count(event.step + later) == 0) continue;
      TransferBreakdown& transfer = result_.transfers[static_cast<std::size_t>(event.index)];
      const Interval skew = skew_of(event, arrivals_);
      transfer.busy_s += seconds(event.end_ns - event.begin_ns);
      transfer.skew_s += seconds(skew.end - skew.begin);
      sum_.comm_s += seconds((event.end_ns - event.begin_ns) - (skew.end - skew.begin));
    }
  }

 private:
  void add_step(const TraceEvent& step) {
    int64_t accounted = 0;
    std::vector<Interval> computing, waits, inside;  // inside: of a forward, what is not computing
    for (const TraceEvent& event : trace_.compute) {
      if (event.step != step.step || event.begin_ns < step.begin_ns || event.end_ns > step.end_ns) continue;
      const int64_t length = event.end_ns - event.begin_ns;
      if (event.kind == TraceKind::data_wait) {
        sum_.data_wait_s += seconds(length);
        accounted += length;
      } else if (event.kind == TraceKind::update) {
        sum_.optimizer_s += seconds(length);
        accounted += length;
        inside.push_back(interval_of(event));
      } else if (event.kind == TraceKind::forward || event.kind == TraceKind::backward ||
                 event.kind == TraceKind::device_wait) {
        computing.push_back(interval_of(event));
      } else if (event.kind == TraceKind::comm_wait) {
        waits.push_back(interval_of(event));
        inside.push_back(interval_of(event));
      }
    }
    int64_t compute = 0;
    for (const Interval& part : computing) {
      compute += part.end - part.begin;
      for (const Interval& other : inside) compute -= overlap(part, other);
    }
    for (const Interval& wait : waits) {
      add_wait(wait);
      accounted += wait.end - wait.begin;
    }
    sum_.compute_s += seconds(compute);
    sum_.step_s += seconds(step.end_ns - step.begin_ns);
    sum_.other_s += seconds(step.end_ns - step.begin_ns - accounted - compute);
  }

  void add_wait(const Interval& wait) {
    int64_t unexplained = wait.end - wait.begin;
    // One thread's events come one after the other, so their ends are in order.
    auto event = std::lower_bound(trace_.communication.begin(), trace_.communication.end(), wait.begin,
                                  [](const TraceEvent& e, int64_t time) { return e.end_ns < time; });
    for (; event != trace_.communication.end() && event->begin_ns < wait.end; ++event) {
      const int64_t common = overlap(wait, interval_of(*event));
      unexplained -= common;
      if (event->kind == TraceKind::update) {
        sum_.optimizer_s += seconds(common);
        continue;
      }
      const auto index = static_cast<std::size_t>(event->index);
      const Interval skew = skew_of(*event, arrivals_);
      const auto startup_ns =
          static_cast<int64_t>(result_.startup_s * share_of_startup(plan_.transfers[index].operation) * 1e9);
      const int64_t late = overlap(wait, skew);
      const int64_t starting = overlap(wait, {skew.end, std::min(event->end_ns, skew.end + startup_ns)});
      sum_.slowest_rank_s += seconds(late);
      sum_.startup_s += seconds(starting);
      sum_.bandwidth_s += seconds(common - late - starting);
      result_.transfers[index].exposed_s += seconds(common);
      result_.ranks[arrivals_.at({event->step, event->index}).slowest].caused_s += seconds(late);
    }
    sum_.scheduling_s += seconds(unexplained);
  }

  const RankTrace& trace_;
  const Plan& plan_;
  const Arrivals& arrivals_;
  const std::set<int64_t>& steps_;
  StepBreakdown& result_;
  RankBreakdown& sum_;
};

/// On rank 0's clock.
RankTrace shifted(RankTrace trace) {
  for (auto* events : {&trace.compute, &trace.communication})
    for (TraceEvent& event : *events)
      for (int64_t* time : {&event.begin_ns, &event.end_ns, &event.queued_ns, &event.issued_ns})
        *time += trace.clock_offset_ns;
  trace.clock_offset_ns = 0;
  return trace;
}

}  // namespace

StepBreakdown break_down(const std::vector<RankTrace>& traces, const Plan& plan, const std::optional<Links>& links) {
  StepBreakdown result;
  result.strategy = plan.strategy;
  std::vector<RankTrace> ranks;
  std::map<int64_t, std::size_t> seen;  // steps, and on how many ranks
  for (const RankTrace& trace : traces) {
    ranks.push_back(shifted(trace));
    result.is_of_device = result.is_of_device || trace.is_of_device;
    for (const TraceEvent& event : trace.compute)
      if (event.kind == TraceKind::step) ++seen[event.step];
  }
  std::set<int64_t> steps;
  for (const auto& [step, count] : seen)
    if (count == ranks.size()) steps.insert(step);
  if (steps.empty()) return result;
  result.first_step = *steps.begin();
  result.steps = static_cast<int64_t>(steps.size());

  const Arrivals arrivals = find_arrivals(ranks);
  find_startup(ranks, plan, links, arrivals, result);
  result.ranks.resize(ranks.size());
  for (const Transfer& transfer : plan.transfers)
    result.transfers.push_back(
        {transfer.name, transfer.operation, transfer.elements() * static_cast<int64_t>(sizeof(float))});
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    RankSum(ranks[rank], plan, arrivals, steps, result, rank).add_up();

  const double count = static_cast<double>(steps.size());
  for (RankBreakdown& rank : result.ranks) rank /= count;
  for (TransferBreakdown& transfer : result.transfers)
    for (double* sum : {&transfer.busy_s, &transfer.skew_s, &transfer.exposed_s})
      *sum /= count * static_cast<double>(ranks.size());
  return result;
}

}  // namespace tutti
