#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

struct Span {
  double begin_us = 0, end_us = 0;
  double length() const { return end_us - begin_us; }
};

using Place = std::pair<int, int>;  // process, thread

struct Event {
  Place place;
  Span time;
  std::string name, category;
  json arguments;
};

struct TraceContent {
  std::vector<Event> events;
  std::map<int, std::string> processes;
  std::map<Place, std::string> threads;
  std::string strategy;
};

TraceContent read(const json& trace) {
  TraceContent content;
  for (const json& entry : trace.at("traceEvents")) {
    const std::string phase = entry.value("ph", "");
    const Place place(entry.value("pid", 0), entry.value("tid", 0));
    const json arguments = entry.value("args", json::object());
    if (phase == "M") {
      const std::string what = entry.at("name"), name = arguments.value("name", "");
      if (what == "process_name") content.processes[place.first] = name;
      if (what == "thread_name") content.threads[place] = name;
    } else if (phase == "X") {
      const double begin = entry.at("ts"), duration = entry.value("dur", 0.0);
      content.events.push_back({place, {begin, begin + duration}, entry.at("name"), entry.value("cat", ""), arguments});
    }
  }
  if (trace.contains("otherData")) content.strategy = trace.at("otherData").value("strategy", "");
  return content;
}

/// When each step began on the first rank and ended on the last.
std::map<int64_t, Span> steps_of(const TraceContent& content) {
  std::map<int64_t, Span> steps;
  for (const Event& event : content.events) {
    if (event.category != "step" || !event.arguments.value("step", json()).is_number_integer()) continue;
    const auto [step, is_new] = steps.emplace(event.arguments.at("step").get<int64_t>(), event.time);
    if (is_new) continue;
    step->second.begin_us = std::min(step->second.begin_us, event.time.begin_us);
    step->second.end_us = std::max(step->second.end_us, event.time.end_us);
  }
  return steps;
}

int64_t median_step(const std::map<int64_t, Span>& steps) {
  std::vector<std::pair<double, int64_t>> by_length;
  by_length.reserve(steps.size());
  for (const auto& [step, time] : steps) by_length.emplace_back(time.length(), step);
  const auto middle = by_length.begin() + static_cast<std::ptrdiff_t>((by_length.size() - 1) / 2);
  std::nth_element(by_length.begin(), middle, by_length.end());
  return middle->second;
}

/// The page's word for a trace's category.
std::string kind_of(const Event& event) {
  if (event.category == "exposed") return "wait";
  return event.category.empty() ? "other" : event.category;
}

/// A place for each thread that does something in the step, in the order of ranks.
std::map<Place, int> make_lanes(const std::vector<const Event*>& events, const TraceContent& content, json& lanes) {
  std::map<Place, int> index;
  for (const Event* event : events) index[event->place] = 0;
  for (auto& [place, lane] : index) {
    const auto thread = content.threads.find(place);
    json described = {
        {"rank", place.first},
        {"name", thread != content.threads.end() ? thread->second : fmt::format("thread {}", place.second)}};
    const auto process = content.processes.find(place.first);
    // "rank 3" is what the rank says already.
    if (process != content.processes.end() && process->second != fmt::format("rank {}", place.first))
      described["process"] = process->second;
    lane = static_cast<int>(lanes.size());
    lanes.push_back(std::move(described));
  }
  return index;
}

json make_timeline(const TraceContent& content, std::optional<int64_t> wanted) {
  const std::map<int64_t, Span> steps = steps_of(content);
  if (steps.empty()) throw Error("the trace has no whole step; record more steps (--trace-steps)");
  const int64_t step = wanted.value_or(median_step(steps));
  const auto found = steps.find(step);
  if (found == steps.end())
    throw Error("the trace has no step {}; it has steps {} to {}", step, steps.begin()->first, steps.rbegin()->first);
  const Span window = found->second;

  std::vector<const Event*> inside;
  for (const Event& event : content.events) {
    const bool is_neighbour = event.category == "step" && event.arguments.value("step", step) != step;
    if (!is_neighbour && event.time.begin_us < window.end_us && event.time.end_us > window.begin_us)
      inside.push_back(&event);
  }
  std::sort(inside.begin(), inside.end(), [](const Event* a, const Event* b) {
    return std::make_pair(a->time.begin_us, -a->time.end_us) < std::make_pair(b->time.begin_us, -b->time.end_us);
  });

  json timeline = {{"title", fmt::format("Step {}{}{}", step, content.strategy.empty() ? "" : ", ", content.strategy)},
                   {"step", step},
                   {"length_us", window.length()},
                   {"lanes", json::array()},
                   {"events", json::array()}};
  const std::map<Place, int> lanes = make_lanes(inside, content, timeline["lanes"]);
  for (const Event* event : inside) {
    json details = event->arguments;
    // A transfer of the step before is worth telling; that the rest is of this one goes without saying.
    if (details.value("step", step) == step) details.erase("step");
    json shown = {{"lane", lanes.at(event->place)},
                  {"name", event->name},
                  {"begin_us", event->time.begin_us - window.begin_us},
                  {"end_us", event->time.end_us - window.begin_us},
                  {"kind", kind_of(*event)}};
    // What a transfer carries, without the operation that all of them share.
    if (details.contains("name")) {
      shown["label"] = details.at("name");
      details.erase("name");
    }
    shown["details"] = std::move(details);
    timeline["events"].push_back(std::move(shown));
  }
  return timeline;
}

}  // namespace

json timeline_from_trace(const json& trace, std::optional<int64_t> step) {
  try {
    return make_timeline(read(trace), step);
  } catch (const json::exception& error) {
    throw Error("this is no Chrome trace as tutti train --trace writes it: {}", error.what());
  }
}

}  // namespace tutti
