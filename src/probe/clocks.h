#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

/// How far a rank's clocks are ahead of rank 0's.
struct ClockOffset {
  double wall_s = 0;         // of the time of day
  double steady_s = 0;       // of std::chrono::steady_clock, which counts from where each machine likes
  double uncertainty_s = 0;  // half of the shortest round trip: neither offset can be further off
};

void to_json(nlohmann::json& json, const ClockOffset& offset);

/// Of every rank, by asking each for the time and taking the quickest answer, as NTP does. A collective.
std::vector<ClockOffset> measure_clock_offsets(Communicator& comm);

}  // namespace tutti
