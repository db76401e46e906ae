#include "tune/link_probe.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "comm/exchange.h"
#include "tutti/plan.h"

namespace tutti {
namespace {

constexpr int kWarmUps = 2, kRounds = 7;
constexpr double kEnough_s = 1.0;

/// Times `exchange` on messages of growing size.
LinkCost measure(Communicator& comm, void* memory, int64_t largest_bytes, double enough_s,
                 const std::function<void(Span message, bool is_new_size)>& exchange) {
  std::vector<LinkSample> samples;
  const auto start = Clock::now();
  for (int64_t bytes = 1 << 10;; bytes = std::min(bytes * 4, largest_bytes)) {
    const Span message{memory, static_cast<std::size_t>(bytes) / sizeof(float), DataType::f32};
    std::vector<double> seconds;
    for (int round = 0; round < kWarmUps + kRounds; ++round) {
      comm.barrier()->wait();
      const auto begin = Clock::now();
      exchange(message, round == 0);
      if (round >= kWarmUps) seconds.push_back(seconds_since(begin));
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
    samples.push_back({bytes, seconds[kRounds / 2]});
    // The next size takes up to four times as long.
    int64_t is_enough = bytes == largest_bytes || seconds_since(start) > enough_s / 2 ? 1 : 0;
    comm.broadcast({&is_enough, 1, DataType::i64}, 0)->wait();
    if (is_enough != 0) break;
  }
  return fit_link_cost(samples);
}

/// In equal parts to all servers, as plans spread their transfers.
void push_pull(PushPull& servers, Span message, bool is_new_size) {
  const auto count = static_cast<std::size_t>(servers.servers());
  const auto begin = [&](std::size_t part) { return message.count * part / count; };
  if (is_new_size) {
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
  const auto timed = [&](const std::function<void(Span message, bool is_new_size)>& exchange) {
    return measure(comm, memory.data, largest, kEnough_s / kinds, exchange);
  };
  Links links;
  links.all_reduce = timed([&](Span message, bool) { comm.all_reduce_sum(message)->wait(); });
  if (probe.all_operations) {
    const auto parts = [&](Span message) {
      Transfer transfer;
      transfer.end = static_cast<int64_t>(message.count);
      return shares(transfer, comm.size());
    };
    links.reduce_scatter = timed([&](Span message, bool) { comm.reduce_scatter_sum(message, parts(message))->wait(); });
    links.all_gather = timed([&](Span message, bool) { comm.all_gather(message, parts(message))->wait(); });
  }
  if (probe.servers != nullptr)
    links.push_pull = timed([&](Span message, bool is_new_size) { push_pull(*probe.servers, message, is_new_size); });
  return nlohmann::json::parse(broadcast_text(comm, nlohmann::json(links).dump())).get<Links>();
}

}  // namespace tutti
