#include "train/rank_times.h"

#include <sys/resource.h>

#include <algorithm>

namespace tutti {

double largest(const std::vector<nlohmann::json>& ranks, const char* key) {
  double value = 0;
  for (const nlohmann::json& rank : ranks) value = std::max(value, rank.at(key).get<double>());
  return value;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tutti
