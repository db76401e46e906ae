#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "probe/facts.h"
#include "probe/levels.h"

namespace tutti {

/// All that `tutti probe` found out.
struct LinksReport {
  std::string transport;
  std::vector<Node> nodes;
  std::vector<RankFacts> ranks;
  std::vector<PairFigures> pairs;
  std::vector<ProbedLevel> levels;
  std::string date;    // "2024-05-01T12:00:00Z"
  double seconds = 0;  // that it took
  double steal = 0;    // percent, the worst of the machines while it measured
};

/// The links file. Its "all_reduce" is that of the widest level, so it reads as plan/links.h's Links too.
nlohmann::json to_json(const LinksReport& report);

/// A table per level, as nccl-tests print them, with the ring bound beside it; then costs, with a small picture each.
std::string describe(const ProbedLevel& level);

/// "▁▂▅█": numbers as bars, the largest full.
std::string sparkline(const std::vector<double>& values);

/// A program for gnuplot that draws bus bandwidth over message size to `file`, by its ending svg or png.
std::string gnuplot_program(const std::vector<ProbedLevel>& levels, const std::filesystem::path& file);

}  // namespace tutti
