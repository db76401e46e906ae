#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/fit.h"
#include "sim/published_table.h"

namespace tutti {

using Clusters = std::map<std::string, Cluster>;  // by network

/// A figure of cluster files that can be fitted: one for all networks, or one for each.
struct Knob {
  std::string name;  // as a cluster file has it: "network.bytes_per_s"
  std::string unit;  // for people
  double scale = 1;  // from the file's unit to the shown one
  double lower = 0, upper = 0;
  std::string network;  // of which; "": shared by all
  std::function<double&(Cluster&)> in;
};

/// Strategies whose predictions differ by less count as equal.
constexpr double kTellsApart = 0.02;

const std::vector<std::string>& published_networks();
std::vector<Knob> published_knobs();

/// The published clusters before anything is fitted: nominal bandwidths and round guesses.
Clusters unfitted_clusters();

/// One row, simulated.
struct Prediction {
  PublishedRow row;
  double step_s = 0;
  double error() const { return step_s / row.step_s() - 1; }
};

struct Calibration {
  Clusters clusters;  // with what was found
  std::vector<Knob> knobs;
  Fit fit;
};

/// Plans made once; simulated for each trial of the parameters.
class PublishedRuns {
 public:
  explicit PublishedRuns(std::vector<PublishedRow> rows);
  std::vector<Prediction> predict(const Clusters& clusters) const;
  const std::vector<PublishedRow>& rows() const { return rows_; }

 private:
  std::vector<PublishedRow> rows_;
  std::vector<PublishedRun> runs_;
};

/// Fits the knobs to the rows, from where the clusters are.
Calibration calibrate(const std::vector<PublishedRow>& rows, Clusters clusters, const std::vector<Knob>& knobs);

struct Score {
  std::size_t rows = 0;
  double mean = 0, worst_tenth = 0, worst = 0;  // of absolute errors; worst_tenth: the 90th percentile
};
Score score_of(const std::vector<Prediction>& predictions);

/// Of each model, network and size: how far the strategy that the simulation prefers is from the best measured.
struct Choice {
  std::string model, network;
  int ranks = 0;
  std::string chosen, best;
  double loss = 0;  // of throughput, measured
};
std::vector<Choice> choices_of(const std::vector<Prediction>& predictions);

}  // namespace tutti
