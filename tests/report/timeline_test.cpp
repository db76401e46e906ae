#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/sample_document.h"
#include "report/timeline.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

json name_thread(int rank, int thread, const std::string& name) {
  return {{"ph", "M"}, {"pid", rank}, {"tid", thread}, {"name", "thread_name"}, {"args", {{"name", name}}}};
}

json span(int rank, int thread, const std::string& category, const std::string& name, double begin, double end,
          int step) {
  return {{"ph", "X"},    {"pid", rank}, {"tid", thread},      {"cat", category},
          {"name", name}, {"ts", begin}, {"dur", end - begin}, {"args", {{"step", step}}}};
}

/// Steps 3, 4 and 5 of two ranks, which take 100, 300 and 200 µs; rank 1 is 10 µs behind.
json three_steps() {
  json events = json::array();
  for (int rank = 0; rank < 2; ++rank) {
    events.push_back(name_thread(rank, 1, "compute"));
    events.push_back(name_thread(rank, 2, "communication"));
    double begin = 1000 + 10 * rank;
    int step = 3;
    for (const double length : {100.0, 300.0, 200.0}) {
      events.push_back(span(rank, 1, "forward", "forward", begin, begin + 40, step));
      events.push_back(span(rank, 1, "exposed", "wait for communication", begin + 50, begin + 90, step));
      // Lasts 20 µs into the next step.
      events.push_back(span(rank, 2, "transfer", "all_gather w", begin + 60, begin + length + 20, step));
      events.push_back(span(rank, 1, "step", "step " + std::to_string(step), begin, begin + length, step));
      begin += length;
      ++step;
    }
  }
  events[4]["args"]["bytes"] = 64;
  return {{"traceEvents", events}, {"otherData", {{"strategy", "dear"}}}};
}

std::vector<json> in_lane(const json& timeline, int lane) {
  std::vector<json> events;
  for (const json& event : timeline.at("events"))
    if (event.at("lane") == lane) events.push_back(event);
  return events;
}

TEST(TimelineFromTrace, ShowsTheStepOfMedianDuration) {
  const json timeline = timeline_from_trace(three_steps());
  EXPECT_EQ(timeline.at("step"), 5);
  EXPECT_EQ(timeline.at("title"), "Step 5, dear");
  EXPECT_EQ(timeline.at("length_us"), 210.0);  // until rank 1 is through
}

TEST(TimelineFromTrace, HasALaneForEachThreadOfEachRank) {
  EXPECT_EQ(timeline_from_trace(three_steps()).at("lanes"), json::parse(R"([{"rank": 0, "name": "compute"},
    {"rank": 0, "name": "communication"}, {"rank": 1, "name": "compute"}, {"rank": 1, "name": "communication"}])"));
}

TEST(TimelineFromTrace, CountsTimeFromTheFirstRanksBegin) {
  const std::vector<json> compute = in_lane(timeline_from_trace(three_steps(), 4), 2);
  // Of rank 1: the step, forward and a wait in it; the steps before and after are none of it.
  ASSERT_EQ(compute.size(), 3u);
  EXPECT_EQ(compute[0].at("name"), "step 4");
  EXPECT_EQ(compute[0].at("begin_us"), 10.0);
  EXPECT_EQ(compute[0].at("end_us"), 310.0);
  EXPECT_EQ(compute[1].at("kind"), "forward");
  EXPECT_EQ(compute[2].at("kind"), "wait");
  EXPECT_EQ(compute[2].at("begin_us"), 60.0);
}

TEST(TimelineFromTrace, ShowsTransfersThatReachIntoTheStepAndSaysWhoseTheyAre) {
  const std::vector<json> transfers = in_lane(timeline_from_trace(three_steps(), 4), 1);
  ASSERT_EQ(transfers.size(), 2u);
  EXPECT_EQ(transfers[0].at("begin_us"), -40.0);
  EXPECT_EQ(transfers[0].at("end_us"), 20.0);
  EXPECT_EQ(transfers[0].at("details").at("step"), 3);
  EXPECT_FALSE(transfers[1].at("details").contains("step"));
  EXPECT_EQ(transfers[0].at("details").at("bytes"), 64);
}

TEST(TimelineFromTrace, ReadsWhatTrainingWrites) {
  const json timeline = timeline_from_trace(sample_trace(), 22);
  EXPECT_EQ(timeline.at("lanes").size(), 8u);
  int transfers = 0, layers = 0;
  for (const json& event : timeline.at("events")) {
    transfers += event.at("kind") == "transfer";
    layers += event.at("kind") == "backward" && event.at("name") != "backward";
    if (event.at("kind") == "transfer") {
      EXPECT_EQ("all_reduce " + event.at("label").get<std::string>(), event.at("name"));
    }
  }
  EXPECT_EQ(transfers, 4 * 40);
  EXPECT_EQ(layers, 4 * 40);
}

TEST(TimelineFromTrace, RefusesWhatItCannotShow) {
  const auto complaint = [](const json& trace, std::optional<int64_t> step) -> std::string {
    try {
      timeline_from_trace(trace, step);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint(three_steps(), 9), "the trace has no step 9; it has steps 3 to 5");
  EXPECT_EQ(complaint({{"traceEvents", json::array()}}, {}),
            "the trace has no whole step; record more steps (--trace-steps)");
  EXPECT_EQ(complaint({{"records", 1}}, {}).rfind("this is no Chrome trace as tutti train --trace writes it: ", 0), 0u);
  EXPECT_EQ(
      complaint(json::parse(R"({"traceEvents": [{"ph": "X", "ts": "soon"}]})"), {}).rfind("this is no Chrome trace", 0),
      0u);
  EXPECT_EQ(complaint(json::parse(R"({"traceEvents": [1, 2]})"), {}).rfind("this is no Chrome trace", 0), 0u);
}

}  // namespace
}  // namespace tutti
