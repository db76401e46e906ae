#include "tutti/records.h"

#include <algorithm>
#include <chrono>

namespace tutti {

void RankTimes::add(const RankTimes& other) {
  train_s += other.train_s;
  comm_s += other.comm_s;
  comm_exposed_s += other.comm_exposed_s;
  data_wait_s += other.data_wait_s;
  test_s += other.test_s;
}

std::optional<double> TestResults::metric(const std::string& name) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& metric) { return metric.first == name; });
  return found == metrics.end() ? std::nullopt : std::optional<double>(found->second);
}

void RecordWriter::add(const Record& record) {
  const double time_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (const auto& sink : sinks_) sink->add(record, time_s);
}

}  // namespace tutti
