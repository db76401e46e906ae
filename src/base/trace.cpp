#include "base/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tutti {
namespace {

// Enough for a step of some hundred parameters; beyond it the buffers grow.
constexpr int64_t kEventsPerStep = 512;
constexpr int64_t kMostReserved = 1 << 16;

auto fields(const TraceEvent& e) {
  return std::make_tuple(static_cast<int>(e.kind), e.index, e.step, e.begin_ns, e.end_ns, e.queued_ns, e.issued_ns);
}

nlohmann::json list(const std::vector<TraceEvent>& events) {
  nlohmann::json json = nlohmann::json::array();
  for (const TraceEvent& event : events) json.push_back(fields(event));
  return json;
}

std::vector<TraceEvent> events_of(const nlohmann::json& json) {
  std::vector<TraceEvent> events;
  for (const nlohmann::json& e : json)
    events.push_back(
        {static_cast<TraceKind>(e.at(0).get<int>()), e.at(1), e.at(2), e.at(3), e.at(4), e.at(5), e.at(6)});
  return events;
}

}  // namespace

bool TraceEvent::operator==(const TraceEvent& other) const { return fields(*this) == fields(other); }

Trace::Trace(const TraceWindow& window) : window_(window) {
  const auto reserved = static_cast<std::size_t>(std::min(window.steps * kEventsPerStep, kMostReserved));
  compute_.events_.reserve(reserved);
  communication_.events_.reserve(reserved / 4);
}

void Trace::leave_out(int64_t step) {
  ++left_out_;
  compute_.is_recording_ = false;
  if (step == window_.first_step)
    ++window_.first_step;
  else
    ++window_.steps;
}

void Trace::begin_step(int64_t step) {
  compute_.step_ = step;
  compute_.is_recording_ = includes(step);
  if (compute_.is_recording_) step_begin_ns_ = trace_now();
}

void Trace::end_step() {
  if (!compute_.is_recording_) return;
  compute_.add(TraceKind::step, step_begin_ns_);
  if (compute_.step_ + 1 < window_.first_step + window_.steps) return;
  compute_.is_recording_ = false;
  is_over_ = true;
}

void Trace::begin_communication(int64_t step) {
  communication_.step_ = step;
  communication_.is_recording_ = step + 1 >= window_.first_step && step < window_.first_step + window_.steps;
}

void to_json(nlohmann::json& json, const RankTrace& trace) {
  json = {{"clock_offset_ns", trace.clock_offset_ns},
          {"is_of_device", trace.is_of_device},
          {"compute", list(trace.compute)},
          {"communication", list(trace.communication)}};
}

void from_json(const nlohmann::json& json, RankTrace& trace) {
  json.at("clock_offset_ns").get_to(trace.clock_offset_ns);
  json.at("is_of_device").get_to(trace.is_of_device);
  trace.compute = events_of(json.at("compute"));
  trace.communication = events_of(json.at("communication"));
}

}  // namespace tutti
