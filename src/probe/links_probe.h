#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probe/timing.h"
#include "tutti/communicator.h"
#include "tutti/links.h"

namespace tutti {

/// What `tutti probe` can time.
enum class ProbeOp { all_reduce, reduce_scatter, all_gather, broadcast, send };

const char* name_of(ProbeOp op);
const std::vector<ProbeOp>& probe_ops();

/// What a link moves for each byte of the message: 2(p-1)/p in an all-reduce of p ranks around a ring. With it,
/// bandwidths of operations and numbers of ranks can be compared; nccl-tests calls the product "bus bandwidth".
double bus_factor(ProbeOp op, int ranks);

/// Many runs of one operation with one size. A run takes as long as its slowest rank.
struct ProbePoint {
  int64_t bytes = 0;
  double median_s = 0, lower_s = 0, upper_s = 0;  // the median and the quartiles
  int count = 0;

  double bytes_per_s() const { return median_s > 0 ? static_cast<double>(bytes) / median_s : 0; }
};

struct ProbedOp {
  ProbeOp op = ProbeOp::all_reduce;
  std::vector<ProbePoint> points;
  LinkCost cost;  // fitted to the medians
};

struct ProbeOptions {
  std::vector<int64_t> sizes;  // bytes, whole floats
  TimedRuns runs = {};         // per point
  std::vector<ProbeOp> ops = probe_ops();
  /// Called on rank 0 before each point.
  std::function<void(ProbeOp op, int64_t bytes)> progress = {};
};

/// 1 KB, 4 KB, … up to `most_bytes`, which is the last.
std::vector<int64_t> probe_sizes(int64_t most_bytes);

/// The median and quartiles of runs.
ProbePoint summarize(int64_t bytes, std::vector<double> seconds);

/// Checks each operation's result, then times it. `send` goes from rank 0 to rank 1 and back, and counts half of that.
/// A collective; the figures are equal on all ranks. Throws Error when a result is wrong.
std::vector<ProbedOp> probe_links(Communicator& comm, const ProbeOptions& options);

}  // namespace tutti
