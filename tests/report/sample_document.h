#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/chrome_trace.h"
#include "report/timeline.h"

namespace tutti {

/// Five steps of a residual network on four ranks, as `tutti train --trace` would write them: each layer's transfer
/// starts when its gradient is ready and the one before is through. Ranks differ a little, and so do steps.
inline nlohmann::json sample_trace() {
  constexpr int kLayers = 40, kRanks = 4, kSteps = 5;
  Plan plan;
  plan.strategy = "wfbp";
  plan.ranks = kRanks;
  plan.transfers.resize(kLayers);
  for (int i = 0; i < kLayers; ++i) {
    const int layer = kLayers - 1 - i;
    const std::string name = fmt::format("layer{}.{}.conv{}.weight", layer / 10 + 1, layer % 10 / 2, layer % 2 + 1);
    const int64_t elements = 2'000 + 1'500 * static_cast<int64_t>(layer) * (layer % 3 + 1);
    plan.slots.push_back({name, layer, plan.elements, elements});
    plan.transfers[i].name = name;
    plan.transfers[i].begin = plan.elements;
    plan.elements += elements;
    plan.transfers[i].end = plan.elements;
  }
  std::vector<RankTrace> ranks(kRanks);
  const auto add = [&](int rank, TraceKind kind, int64_t begin, int64_t end, int64_t step, int index = -1) {
    ranks[rank].compute.push_back({kind, index, step, begin, end});
  };
  int64_t free = 5'000'000;  // when the links are
  for (int64_t step = 20; step < 20 + kSteps; ++step) {
    std::vector<std::vector<int64_t>> ready(kRanks);  // by rank and transfer
    std::vector<int64_t> began(kRanks), backward_end(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      const int64_t slowness = 100 + 2 * rank + (step * 7) % 5;
      int64_t now = began[rank] = free + 1'100'000 + 40'000 * ((rank + step) % kRanks);
      add(rank, TraceKind::data_wait, now, now + 350'000, step);
      const int64_t forward = now += 380'000;
      for (int layer = 0; layer < kLayers; ++layer) {
        add(rank, TraceKind::first_use, now, now, step, layer);
        now += slowness * (1'800 + 60 * (layer % 7));
      }
      add(rank, TraceKind::forward, forward, now, step);
      const int64_t backward = now;
      for (int i = 0; i < kLayers; ++i) {
        now += slowness * (3'400 + 130 * (i % 5));
        add(rank, TraceKind::gradient, now, now, step, plan.slots[i].parameter);
        ready[rank].push_back(now);
      }
      add(rank, TraceKind::backward, backward, now, step);
      backward_end[rank] = now;
    }
    for (int i = 0; i < kLayers; ++i) {
      int64_t last = 0;
      for (int rank = 0; rank < kRanks; ++rank) last = std::max(last, std::max(free, ready[rank][i] + 15'000));
      const int64_t end = last + 120'000 + plan.transfers[i].elements() * 8;
      for (int rank = 0; rank < kRanks; ++rank) {
        const int64_t start = std::max(free, ready[rank][i] + 15'000);
        ranks[rank].communication.push_back({TraceKind::transfer, i, step, start, end, ready[rank][i], start + 4'000});
      }
      free = end;
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      add(rank, TraceKind::comm_wait, backward_end[rank] + 20'000, free + 30'000, step);
      add(rank, TraceKind::update, free + 40'000, free + 940'000, step);
      add(rank, TraceKind::step, began[rank], free + 990'000, step);
    }
  }
  return nlohmann::json::parse(chrome_trace(ranks, plan));
}

/// A chart in the manner of gnuplot's SVG: throughput against ranks, with the ideal line.
inline std::string sample_chart() {
  const std::array<const char*, 4> colours = {"#0072B2", "#E69F00", "#009E73", "#D55E00"};
  std::string svg =
      R"(<?xml version="1.0"?><svg width="640" height="400" viewBox="0 0 640 400" xmlns="http://www.w3.org/2000/svg">)"
      R"(<title>chart</title><g font-family="sans-serif" font-size="13" fill="black" stroke="none">)";
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format(
        R"(<path d="M60 {0} H620" stroke="gray" stroke-width="0.4" fill="none"/><text x="52" y="{1}" text-anchor="end">{2}</text>)",
        360 - 80 * i, 364 - 80 * i, 250 * i);
  for (int i = 0; i < 4; ++i)
    svg += fmt::format(R"(<text x="{}" y="382" text-anchor="middle">{}</text>)", 90 + 165 * i, 1 << i);
  svg +=
      R"(<path d="M90 340 L255 300 L420 220 L585 60" fill="none" stroke="black" stroke-dasharray="6,4"/><text x="590" y="50" text-anchor="end">ideal</text>)";
  const std::array<const char*, 4> names = {"dear", "mgwfbp", "wfbp", "bsp"};
  for (int i = 0; i < 4; ++i)
    svg += fmt::format(
        R"(<path d="M90 340 L255 {} L420 {} L585 {}" fill="none" stroke="{}" stroke-width="2.5"/><text x="80" y="{}" fill="{}">{}</text>)",
        303 + 5 * i, 230 + 15 * i, 90 + 38 * i, colours.at(i), 60 + 20 * i, colours.at(i), names.at(i));
  return svg + "</g></svg>";
}

inline nlohmann::json sample_rows() {
  const std::array<const char*, 7> strategies = {"bsp", "wfbp", "buckets", "mgwfbp", "bytescheduler", "dear", "zero1"};
  const std::array<const char*, 3> networks = {"1GbE", "10GbE", "100GbIB"};
  const std::array<double, 3> penalty = {0.52, 0.21, 0.04};
  const std::array<double, 7> skill = {1.0, 0.8, 0.6, 0.45, 0.5, 0.35, 0.4};
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t n = 0; n < networks.size(); ++n)
    for (const int ranks : {2, 4})
      for (std::size_t s = 0; s < strategies.size(); ++s) {
        const double efficiency = 1 - penalty.at(n) * skill.at(s) * (ranks == 4 ? 1.3 : 1);
        nlohmann::json row = {{"strategy", strategies.at(s)},
                              {"network", networks.at(n)},
                              {"ranks", ranks},
                              {"source", n == 2 ? "simulated" : "measured"}};
        if (n == 0 && s == 4 && ranks == 4) {
          row["throughput"] = {{"text", "failed"}, {"label", "rank 2 stopped"}};
        } else {
          row["throughput"] = {{"value", 263.1 * ranks * efficiency},
                               {"deviation", 1.0 + static_cast<double>(s) + 4.0 * static_cast<double>(n)}};
          if (s == 5) row["throughput"]["best"] = true;
          row["efficiency"] = efficiency;
          row["step"] = 64 / (263.1 * efficiency);
          row["run"] = 4000 / efficiency / ranks;
        }
        rows.push_back(std::move(row));
      }
  return rows;
}

/// A page of every kind of part, the size of a real study: 7 strategies × 3 networks × 2 numbers of ranks. The numbers
/// are invented.
inline nlohmann::json sample_document() {
  nlohmann::json timeline = timeline_from_trace(sample_trace());
  timeline["source"] = "measured";
  timeline["caption"] = "The step of median duration. Layers in forward and backward, transfers as they travel.";
  return {
      {"title", "Strategies and networks"},
      {"subtitle",
       "A sample page with invented numbers: seven strategies, three networks, two and four ranks, ResNet-50 at a "
       "batch of 64 per rank."},
      {"command",
       "./tutti bench strategies-networks --quick --out runs/sample && ./tutti report runs/sample --html sample.html"},
      {"notes",
       {"On 1GbE the deviation over repeats exceeds the difference between dear and zero1: no winner is named.",
        {{"level", "note"}, {"text", "Rows of 100GbIB are simulated, the others measured."}}}},
      {"highlights",
       {{{"label", "Fastest on 10GbE, 4 ranks"}, {"value", "dear"}, {"detail", "952 ± 10 samples/s"}},
        {{"label", "Scaling efficiency"}, {"value", "90.4 %"}, {"detail", "dear, 4 ranks, 10GbE"}},
        {{"label", "Over bsp"}, {"value", "1.24 ×"}, {"detail", "same network and ranks"}},
        {{"label", "Cells"}, {"value", "41 of 42"}, {"detail", "1 failed"}}}},
      {"figures",
       {{{"id", "throughput"},
         {"title", "Throughput against ranks"},
         {"caption", "10GbE; the dashed line is ideal scaling."},
         {"svg", sample_chart()}},
        {{"id", "efficiency"},
         {"title", "The same chart again"},
         {"caption", "Two figures share a row where there is room."},
         {"svg", sample_chart()}}}},
      {"tables",
       {{{"id", "throughput"},
         {"title", "Samples per second"},
         {"caption", "Mean over repeats ± deviation; efficiency is against one rank of the same sweep."},
         {"columns",
          {{{"key", "strategy"}, {"label", "Strategy"}, {"kind", "text"}},
           {{"key", "network"}, {"label", "Network"}, {"kind", "text"}},
           {{"key", "ranks"}, {"label", "Ranks"}, {"kind", "number"}},
           {{"key", "throughput"}, {"label", "Samples/s"}, {"kind", "plusminus"}, {"digits", 1}},
           {{"key", "efficiency"}, {"label", "Efficiency"}, {"kind", "percent"}, {"digits", 1}},
           {{"key", "step"}, {"label", "Step"}, {"kind", "duration"}},
           {{"key", "run"}, {"label", "Run time"}, {"kind", "duration"}},
           {{"key", "source"}, {"label", "Source"}, {"kind", "text"}}}},
         {"rows", sample_rows()}}}},
      {"timelines", {timeline}},
      {"environment",
       {{"host", "sample"},
        {"cpu", "a processor of the day"},
        {"cores", 2},
        {"compiler", "GNU 12.2.0"},
        {"libtorch", "1.13.0"},
        {"tutti", "0.1.0"},
        {"commit", "000000000000"},
        {"build", "Release"},
        {"load", {{"start", 0.4}, {"end", 1.9}}}}}};
}

}  // namespace tutti
