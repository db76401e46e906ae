#include "probe/links_probe.h"

#include <algorithm>

#include "base/clock.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kLinkTag = 3;

/// One operation on one message, again and again.
class Runner {
 public:
  Runner(Communicator& comm, ProbeOp op, float* data, int64_t bytes)
      : comm_(comm),
        op_(op),
        data_(data),
        message_{data, static_cast<std::size_t>(bytes) / sizeof(float), DataType::f32},
        counts_(even_split(message_.count, comm.size())) {}

  /// Seconds on this rank; 0 where it takes no part.
  double run() {
    const auto begin = Clock::now();
    switch (op_) {
      case ProbeOp::all_reduce:
        comm_.all_reduce_sum(message_)->wait();
        break;
      case ProbeOp::reduce_scatter:
        comm_.reduce_scatter_sum(message_, counts_)->wait();
        break;
      case ProbeOp::all_gather:
        comm_.all_gather(message_, counts_)->wait();
        break;
      case ProbeOp::broadcast:
        comm_.broadcast(message_, 0)->wait();
        break;
      case ProbeOp::send:
        if (comm_.rank() > 1) return 0;
        if (comm_.rank() == 0) comm_.send(message_, 1, kLinkTag)->wait();
        comm_.receive(message_, 1 - comm_.rank(), kLinkTag)->wait();
        if (comm_.rank() == 1) comm_.send(message_, 0, kLinkTag)->wait();
        return seconds_since(begin) / 2;
    }
    return seconds_since(begin);
  }

  /// Each rank brings its number + 1 in every element; so the result is known. What follows runs on zeros, which stay.
  void check() {
    std::vector<float> host;
    float* const on_device = data_;
    if (comm_.device_stream() != nullptr) {  // a GPU's memory cannot be looked into: the host's goes through it
      host.resize(message_.count);
      message_.data = data_ = host.data();
    }
    const auto mine = static_cast<float>(comm_.rank() + 1), all = static_cast<float>(comm_.size());
    std::fill_n(data_, message_.count, mine);
    run();
    std::size_t begin = 0;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const std::size_t count = counts_[static_cast<std::size_t>(rank)];
      const bool is_own = rank == comm_.rank();
      float expected = mine;
      if (op_ == ProbeOp::all_reduce || (op_ == ProbeOp::reduce_scatter && is_own)) expected = all * (all + 1) / 2;
      if (op_ == ProbeOp::all_gather) expected = static_cast<float>(rank + 1);
      if (op_ == ProbeOp::broadcast || (op_ == ProbeOp::send && comm_.rank() < 2)) expected = 1;
      const bool is_defined = op_ != ProbeOp::reduce_scatter || is_own;
      for (const std::size_t at : {begin, begin + count / 2, begin + count - 1})
        if (count > 0 && is_defined && data_[at] != expected)
          throw Error("{} of {} bytes over {} is wrong on rank {}: element {} is {}, not {}", name_of(op_),
                      message_.bytes(), comm_.name(), comm_.rank(), at, data_[at], expected);
      begin += count;
    }
    std::fill_n(data_, message_.count, 0.0F);
    message_.data = data_ = on_device;
  }

 private:
  Communicator& comm_;
  ProbeOp op_;
  float* data_;
  Span message_;
  std::vector<std::size_t> counts_;
};

ProbePoint measure_point(Communicator& comm, ProbeOp op, float* data, int64_t bytes, const ProbeOptions& options) {
  Runner runner(comm, op, data, bytes);
  comm.barrier()->wait();
  runner.check();
  return summarize(bytes, time_runs(comm, options.runs, [&] { return runner.run(); }));
}

}  // namespace

const char* name_of(ProbeOp op) {
  switch (op) {
    case ProbeOp::all_reduce:
      return "all_reduce";
    case ProbeOp::reduce_scatter:
      return "reduce_scatter";
    case ProbeOp::all_gather:
      return "all_gather";
    case ProbeOp::broadcast:
      return "broadcast";
    case ProbeOp::send:
      break;
  }
  return "send";
}

const std::vector<ProbeOp>& probe_ops() {
  static const std::vector<ProbeOp> all = {ProbeOp::all_reduce, ProbeOp::reduce_scatter, ProbeOp::all_gather,
                                           ProbeOp::broadcast, ProbeOp::send};
  return all;
}

double bus_factor(ProbeOp op, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (op == ProbeOp::all_reduce) return 2 * others;
  return op == ProbeOp::reduce_scatter || op == ProbeOp::all_gather ? others : 1;
}

std::vector<int64_t> probe_sizes(int64_t most_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1 << 10; bytes < most_bytes; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(most_bytes);
  return sizes;
}

ProbePoint summarize(int64_t bytes, std::vector<double> seconds) {
  if (seconds.empty()) return {bytes};
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](std::size_t quarters) { return seconds[(seconds.size() - 1) * quarters / 4]; };
  return {bytes, at(2), at(1), at(3), static_cast<int>(seconds.size())};
}

std::vector<ProbedOp> probe_links(Communicator& comm, const ProbeOptions& options) {
  const int64_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  auto* const data = static_cast<float*>(comm.allocate(static_cast<std::size_t>(largest)));
  std::vector<ProbedOp> probed;
  for (const ProbeOp op : options.ops) {
    ProbedOp result{op, {}, {}};
    std::vector<LinkSample> samples;
    for (const int64_t bytes : options.sizes) {
      if (comm.rank() == 0 && options.progress) options.progress(op, bytes);
      result.points.push_back(measure_point(comm, op, data, bytes, options));
      samples.push_back({bytes, result.points.back().median_s});
    }
    result.cost = fit_link_cost(std::move(samples));
    probed.push_back(std::move(result));
  }
  return probed;
}

}  // namespace tutti
