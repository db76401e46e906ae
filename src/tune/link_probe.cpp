#include "tune/link_probe.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/median.h"
#include "comm/exchange.h"
#include "probe/links_probe.h"
#include "tutti/plan.h"

namespace tutti {
namespace {

constexpr TimedRuns kRuns = {0, 7, 7};
constexpr double kEnoughSeconds = 1.0;

/// Times `exchange` on messages of growing size.
LinkCost measure(Communicator& comm, void* memory, int64_t largest_bytes, double enough_s,
                 const std::function<void(Span message)>& exchange) {
  std::vector<LinkSample> samples;
  const auto start = Clock::now();
  for (const int64_t bytes : probe_sizes(largest_bytes)) {
    const Span message{memory, static_cast<std::size_t>(bytes) / sizeof(float), DataType::f32};
    const auto timed = [&] {
      const auto begin = Clock::now();
      exchange(message);
      return seconds_since(begin);
    };
    samples.push_back({bytes, upper_median(time_runs(comm, kRuns, timed))});
    // The next size takes up to four times as long.
    int64_t is_enough = seconds_since(start) > enough_s / 2 ? 1 : 0;
    comm.broadcast({&is_enough, 1, DataType::i64}, 0)->wait();
    if (is_enough != 0) break;
  }
  return fit_link_cost(samples);
}

/// In equal parts to all servers, as plans spread their transfers.
void push_pull(PushPull& servers, Span message, std::size_t& announced) {
  const auto count = static_cast<std::size_t>(servers.servers());
  const auto begin = [&](std::size_t part) { return message.count * part / count; };
  if (std::exchange(announced, message.count) != message.count) {
    std::vector<PushPullMessage> parts;
    for (std::size_t i = 0; i < count; ++i) parts.push_back({begin(i + 1) - begin(i), static_cast<int>(i)});
    servers.announce(message.type, parts);
  }
  servers.begin_step();
  std::vector<std::unique_ptr<Work>> works;
  for (std::size_t i = 0; i < count; ++i)
    works.push_back(
        servers.start(i, {static_cast<float*>(message.data) + begin(i), begin(i + 1) - begin(i), message.type}));
  for (const auto& work : works) work->wait();
}

}  // namespace

Links measure_links(Communicator& comm, const LinkProbe& probe, Span memory) {
  const auto largest = static_cast<int64_t>(memory.bytes());
  const int kinds = (probe.all_operations ? 3 : 1) + (probe.servers != nullptr ? 1 : 0);
  const auto timed = [&](const std::function<void(Span message)>& exchange) {
    return measure(comm, memory.data, largest, kEnoughSeconds / kinds, exchange);
  };
  Links links;
  links.all_reduce = timed([&](Span message) { comm.all_reduce_sum(message)->wait(); });
  if (probe.all_operations) {
    const auto parts = [&](Span message) {
      Transfer transfer;
      transfer.end = static_cast<int64_t>(message.count);
      return shares(transfer, comm.size());
    };
    links.reduce_scatter = timed([&](Span message) { comm.reduce_scatter_sum(message, parts(message))->wait(); });
    links.all_gather = timed([&](Span message) { comm.all_gather(message, parts(message))->wait(); });
  }
  std::size_t announced = 0;  // the length that the servers expect
  if (probe.servers != nullptr)
    links.push_pull = timed([&](Span message) { push_pull(*probe.servers, message, announced); });
  return nlohmann::json::parse(broadcast_text(comm, nlohmann::json(links).dump())).get<Links>();
}

}  // namespace tutti
