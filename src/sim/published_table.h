#pragma once

#include <string>
#include <vector>

#include "sim/cluster.h"
#include "tutti/plan.h"

namespace tutti {

/// One figure of a published table of strategies on networks.
struct PublishedRow {
  std::string model;    // as `tutti models` names it
  int64_t batch = 0;    // per rank
  std::string network;  // "10gbe", "100gbib", "100gbe": the shipped cluster files
  std::string method;   // as published: "WFBP-A2A"
  int ranks = 0;
  double baseline = 0;    // samples/s of one rank
  double throughput = 0;  // samples/s of all
  double deviation = 0;
  bool is_mislabelled = false;  // equals the row of another network within 2 %

  double step_s() const { return static_cast<double>(batch) * ranks / throughput; }
};

/// The figures of a table of strategies (published/strategies_table.h), with names as ours. Throws Error
/// naming the line that cannot be read, or whose model or network nobody here knows.
std::vector<PublishedRow> parse_published(const std::string& content, const std::string& file);

/// How the authors ran a method: what our plan for it is.
struct PublishedRun {
  Plan plan;
  Profile profile;
  std::string optimizer;
};
PublishedRun run_of(const PublishedRow& row);

}  // namespace tutti
