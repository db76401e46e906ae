#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace tutti {

/// Totals of one rank over an epoch or a run.
struct RankTimes {
  double train_s = 0, comm_s = 0, comm_exposed_s = 0, data_wait_s = 0, test_s = 0;

  void add(const RankTimes& other) {
    train_s += other.train_s;
    comm_s += other.comm_s;
    comm_exposed_s += other.comm_exposed_s;
    data_wait_s += other.data_wait_s;
    test_s += other.test_s;
  }
  nlohmann::json describe() const {
    return {{"train_s", train_s},
            {"comm_s", comm_s},
            {"comm_exposed_s", comm_exposed_s},
            {"data_wait_s", data_wait_s},
            {"test_s", test_s}};
  }
};

/// The largest value of `key` over the ranks' descriptions: the slowest rank's.
double largest(const std::vector<nlohmann::json>& ranks, const char* key);

/// Of this process, so far.
int64_t peak_rss_bytes();

}  // namespace tutti
