#include "sim/calibration.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/simulator.h"
#include "tutti/error.h"

namespace tutti {

const std::vector<std::string>& published_networks() {
  static const std::vector<std::string> names = {"10gbe", "100gbib", "100gbe"};
  return names;
}

std::vector<Knob> published_knobs() {
  std::vector<Knob> knobs = {
      {"inside.bytes_per_s", "GB/s", 1e-9, 1e9, 16e9, "", [](Cluster& c) -> double& { return c.inside.bytes_per_s; }},
      {"inside.startup_s", "µs", 1e6, 1e-6, 10e-6, "", [](Cluster& c) -> double& { return c.inside.startup_s; }},
      {"software.negotiation_s", "µs", 1e6, 1e-7, 1e-2, "",
       [](Cluster& c) -> double& { return c.software.negotiation_s; }},
      {"software.negotiation_per_doubling_s", "µs", 1e6, 1e-7, 1e-3, "",
       [](Cluster& c) -> double& { return c.software.negotiation_per_doubling_s; }},
      {"software.launch_s", "µs", 1e6, 1e-7, 1e-2, "", [](Cluster& c) -> double& { return c.software.launch_s; }},
      {"software.stage_launch_s", "µs", 1e6, 1e-7, 1e-2, "",
       [](Cluster& c) -> double& { return c.software.stage_launch_s; }},
      {"software.slowdown", "%", 100, 1e-3, 2, "", [](Cluster& c) -> double& { return c.software.slowdown; }},
      {"software.adam_launch_s", "µs", 1e6, 1e-7, 1e-2, "",
       [](Cluster& c) -> double& { return c.software.adam_launch_s; }},
      {"software.unmerge_s", "µs", 1e6, 1e-7, 1e-3, "", [](Cluster& c) -> double& { return c.software.unmerge_s; }},
      {"software.scheduled_sgd_s", "µs", 1e6, 1e-6, 1e-2, "",
       [](Cluster& c) -> double& { return c.software.scheduled_sgd_s; }},
      {"software.scheduled_adam_s", "µs", 1e6, 1e-6, 1e-2, "",
       [](Cluster& c) -> double& { return c.software.scheduled_adam_s; }},
      {"software.transfer_slowdown", "%", 100, 1e-3, 5, "",
       [](Cluster& c) -> double& { return c.software.transfer_slowdown; }},
      {"software.server_sum_bytes_per_s", "GB/s", 1e-9, 1e9, 1e12, "",
       [](Cluster& c) -> double& { return c.software.server_sum_bytes_per_s; }},
  };
  for (const std::string& name : published_networks()) {
    knobs.push_back({"network.bytes_per_s", "GB/s", 1e-9, 5e8, name == "10gbe" ? 1.25e9 : 12.5e9, name,
                     [](Cluster& c) -> double& { return c.network.bytes_per_s; }});
    // RDMA starts within microseconds, TCP takes system calls and interrupts.
    const bool is_tcp = name != "100gbib";
    knobs.push_back({"network.startup_s", "µs", 1e6, is_tcp ? 10e-6 : 2e-6, is_tcp ? 60e-6 : 15e-6, name,
                     [](Cluster& c) -> double& { return c.network.startup_s; }});
    // One TCP connection fills 10 Gbit/s, and not 100.
    if (name == "100gbe")
      knobs.push_back({"network.connection_bytes_per_s", "GB/s", 1e-9, 1e8, 12.5e9, name,
                       [](Cluster& c) -> double& { return c.network.connection_bytes_per_s; }});
  }
  return knobs;
}

Clusters unfitted_clusters() {
  Clusters clusters;
  for (const std::string& name : published_networks()) {
    Cluster cluster;
    cluster.name = name;
    cluster.groups = {{8, 4, Device{"RTX 2080 Ti", 13.4e12, 616e9}}};
    cluster.collective = Collective::ring;
    cluster.inside.bytes_per_s = 8e9;
    cluster.inside.startup_s = 5e-6;
    cluster.network.bytes_per_s = name == "10gbe" ? 1.2e9 : name == "100gbe" ? 6e9 : 8e9;
    cluster.network.startup_s = name == "100gbib" ? 8e-6 : 25e-6;
    if (name == "100gbe") {
      cluster.network.connection_bytes_per_s = 1.5e9;
      cluster.network.connections = 2;  // NCCL's rings over sockets
      cluster.network.duplex = 1;       // TCP through IP over InfiniBand: processors limit, sending and receiving alike
    }
    Software& software = cluster.software;
    software.max_in_flight = 1000;
    software.scheduled_cycle_s = 5e-3;
    software.negotiation_s = 100e-6;
    software.negotiation_per_doubling_s = 100e-6;
    software.launch_s = software.stage_launch_s = 100e-6;
    software.slowdown = 0.05;
    software.transfer_slowdown = 0.5;
    software.adam_launch_s = 200e-6;
    software.unmerge_s = 20e-6;
    software.scheduled_sgd_s = software.scheduled_adam_s = 500e-6;
    software.server_sum_bytes_per_s = 5e9;
    software.asks_for_sums = true;
    clusters[name] = cluster;
  }
  return clusters;
}

PublishedRuns::PublishedRuns(std::vector<PublishedRow> rows) : rows_(std::move(rows)) {
  for (const PublishedRow& row : rows_) runs_.push_back(run_of(row));
}

std::vector<Prediction> PublishedRuns::predict(const Clusters& clusters) const {
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto found = clusters.find(rows_[i].network);
    if (found == clusters.end()) throw Error("no cluster for network '{}'", rows_[i].network);
    SimulationOptions options;
    options.optimizer = runs_[i].optimizer;
    const SimulatedStep step =
        simulate(runs_[i].plan, {runs_[i].profile}, found->second, lay_out(found->second, rows_[i].ranks), options);
    predictions.push_back({rows_[i], step.step_s});
  }
  return predictions;
}

Calibration calibrate(const std::vector<PublishedRow>& rows, Clusters clusters, const std::vector<Knob>& knobs) {
  const PublishedRuns runs(rows);
  std::vector<FitParameter> parameters;
  for (const Knob& knob : knobs) {
    Cluster& first = knob.network.empty() ? clusters.begin()->second : clusters.at(knob.network);
    parameters.push_back({knob.name, std::clamp(knob.in(first), knob.lower, knob.upper), knob.lower, knob.upper});
  }
  const auto set = [&](const std::vector<double>& values) {
    for (std::size_t i = 0; i < knobs.size(); ++i)
      for (auto& [network, cluster] : clusters)
        if (knobs[i].network.empty() || knobs[i].network == network) knobs[i].in(cluster) = values[i];
  };
  Calibration result;
  result.knobs = knobs;
  const auto residuals = [&](const std::vector<double>& values) {
    set(values);
    std::vector<double> errors;
    for (const Prediction& prediction : runs.predict(clusters))
      errors.push_back(std::log(prediction.step_s / prediction.row.step_s()));
    return errors;
  };
  // Rows are believed to 2.5 %, guesses to a factor of e: one of these weighs as much as the other.
  constexpr double kPull = 0.025;
  result.fit = fit_parameters(parameters, residuals, kPull);
  std::vector<double> values;
  values.reserve(result.fit.parameters.size());
  for (const FittedParameter& parameter : result.fit.parameters) values.push_back(parameter.value);
  set(values);
  result.clusters = std::move(clusters);
  return result;
}

Score score_of(const std::vector<Prediction>& predictions) {
  Score score;
  std::vector<double> errors;
  errors.reserve(predictions.size());
  for (const Prediction& prediction : predictions) errors.push_back(std::abs(prediction.error()));
  if (errors.empty()) return score;
  std::sort(errors.begin(), errors.end());
  score.rows = errors.size();
  for (const double error : errors) score.mean += error / static_cast<double>(errors.size());
  score.worst_tenth = errors[(errors.size() * 9 + 9) / 10 - 1];
  score.worst = errors.back();
  return score;
}

std::vector<Choice> choices_of(const std::vector<Prediction>& predictions) {
  using Key = std::tuple<std::string, std::string, int>;
  std::map<Key, std::vector<const Prediction*>> cases;
  for (const Prediction& prediction : predictions)
    cases[{prediction.row.model, prediction.row.network, prediction.row.ranks}].push_back(&prediction);
  std::vector<Choice> choices;
  for (const auto& [key, rows] : cases) {
    // Servers take machines of their own: they have to be worth it by more than the simulation can tell apart.
    const auto asked_s = [](const Prediction* prediction) {
      const std::string& method = prediction->row.method;
      const bool has_servers = method.size() > 3 && method.compare(method.size() - 3, 3, "-PS") == 0;
      return prediction->step_s * (has_servers ? 1 + kTellsApart : 1);
    };
    const Prediction* chosen = *std::min_element(
        rows.begin(), rows.end(), [&](const Prediction* a, const Prediction* b) { return asked_s(a) < asked_s(b); });
    const Prediction* best = *std::max_element(rows.begin(), rows.end(), [](const Prediction* a, const Prediction* b) {
      return a->row.throughput < b->row.throughput;
    });
    choices.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), chosen->row.method, best->row.method,
                       1 - chosen->row.throughput / best->row.throughput});
  }
  return choices;
}

}  // namespace tutti
