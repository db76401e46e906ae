#include "engine/link_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "comm/exchange.h"

namespace tutti {
namespace {

constexpr int kWarmUps = 2, kRounds = 7;
constexpr double kEnough_s = 1.0;

}  // namespace

Links measure_links(Communicator& comm, int64_t largest_bytes) {
  const int64_t largest = std::clamp<int64_t>(largest_bytes, 1 << 16, 64 << 20);
  void* const memory = comm.allocate(static_cast<std::size_t>(largest));
  std::vector<LinkSample> samples;
  const auto start = Clock::now();
  for (int64_t bytes = 1 << 10;; bytes = std::min(bytes * 4, largest)) {
    const Span message{memory, static_cast<std::size_t>(bytes) / sizeof(float), DataType::f32};
    std::vector<double> seconds;
    for (int round = 0; round < kWarmUps + kRounds; ++round) {
      comm.barrier()->wait();
      const auto begin = Clock::now();
      comm.all_reduce_sum(message)->wait();
      if (round >= kWarmUps) seconds.push_back(seconds_since(begin));
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
    samples.push_back({bytes, seconds[kRounds / 2]});
    int64_t is_enough = bytes == largest || seconds_since(start) > kEnough_s / 2
                            ? 1
                            : 0;  // the next size takes up to four times as long
    comm.broadcast({&is_enough, 1, DataType::i64}, 0)->wait();
    if (is_enough != 0) break;
  }
  Links links;
  links.all_reduce = fit_link_cost(samples);
  return nlohmann::json::parse(broadcast_text(comm, nlohmann::json(links).dump())).get<Links>();
}

}  // namespace tutti
