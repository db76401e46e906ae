#include "engine/link_probe.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "comm/exchange.h"

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

}  // namespace

Links measure_links(Communicator& comm, PushPull* servers, int64_t largest_bytes) {
  const int64_t largest = std::clamp<int64_t>(largest_bytes, 1 << 16, 64 << 20);
  void* const memory = comm.allocate(static_cast<std::size_t>(largest));
  const double enough_s = servers != nullptr ? kEnough_s / 2 : kEnough_s;
  Links links;
  links.all_reduce =
      measure(comm, memory, largest, enough_s, [&](Span message, bool) { comm.all_reduce_sum(message)->wait(); });
  if (servers != nullptr)
    links.push_pull = measure(comm, memory, largest, enough_s, [&](Span message, bool is_new_size) {
      if (is_new_size) servers->announce(message.type, {{message.count, 0}});
      servers->begin_step();
      servers->start(0, message)->wait();
    });
  return nlohmann::json::parse(broadcast_text(comm, nlohmann::json(links).dump())).get<Links>();
}

}  // namespace tutti
