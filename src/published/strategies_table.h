#pragma once

#include <optional>
#include <string>
#include <vector>

#include "published/published_text.h"

namespace tutti {

/// Samples per second on a number of ranks, as a text states them.
struct PublishedRate {
  int ranks = 1;
  double samples_per_s = 0;
  std::optional<double> deviation;
  bool is_baseline() const { return ranks == 1; }
};

/// A row of a table of strategies on networks: names as its authors wrote them.
struct StrategiesRow {
  std::size_t line = 0;  // counted from 0, for refuse_line()
  std::string model;
  int batch = 0;  // per rank
  std::string network;
  std::string method;
  std::vector<PublishedRate> rates;
};

/// Whether a text has such a table: "| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs | …", with "mean +-
/// deviation"; or figures (published/figures_file.h) with a column of strategies.
bool has_strategies(const PublishedText& text);

/// Its rows. Throws Error naming the line that cannot be read; notes where the header and the rows disagree.
std::vector<StrategiesRow> read_strategies(PublishedText& text);

}  // namespace tutti
