#include "runlog/gathered_traces.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "comm/exchange.h"
#include "probe/clocks.h"

namespace tutti {

std::vector<RankTrace> gather_traces(const Trace& mine, Communicator& comm, bool are_several_machines) {
  RankTrace trace;
  trace.is_of_device = mine.is_of_device();
  trace.compute = mine.compute_events();
  trace.communication = mine.communication_events();
  if (are_several_machines) {
    // Steady clocks of machines count from different times. An offset that may as well be none is none.
    const ClockOffset offset = measure_clock_offsets(comm)[static_cast<std::size_t>(comm.rank())];
    if (std::abs(offset.steady_s) > offset.uncertainty_s) trace.clock_offset_ns = -std::llround(offset.steady_s * 1e9);
  }
  std::vector<RankTrace> all;
  for (const std::string& text : gather_texts(comm, nlohmann::json(trace).dump()))
    all.push_back(nlohmann::json::parse(text).get<RankTrace>());
  return all;
}

}  // namespace tutti
