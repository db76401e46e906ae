#include "report/run_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "options/option_table.h"
#include "report/fields.h"
#include "report/node_list.h"
#include "report/step_breakdown.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string emulated_network(const json& config) {
  const double gbps = number_in(config, "link_gbps").value_or(0);
  const double startup_us = number_in(config, "link_startup_us").value_or(0);
  if (gbps <= 0 && startup_us <= 0) return "";
  return fmt::format("{}{}{}", gbps > 0 ? fmt::format("{:g} Gbit/s", gbps) : "", gbps > 0 && startup_us > 0 ? ", " : "",
                     startup_us > 0 ? fmt::format("{:g} us", startup_us) : "");
}

StepParts mean_parts(const StepBreakdown& breakdown) {
  StepParts parts;
  double slowest = 0, startup = 0, bandwidth = 0, scheduling = 0;
  const auto n = static_cast<double>(std::max<std::size_t>(1, breakdown.ranks.size()));
  for (const RankBreakdown& rank : breakdown.ranks) {
    parts.compute_s += rank.compute_s / n;
    parts.data_wait_s += rank.data_wait_s / n;
    parts.optimizer_s += rank.optimizer_s / n;
    slowest += rank.slowest_rank_s / n;
    startup += rank.startup_s / n;
    bandwidth += rank.bandwidth_s / n;
    scheduling += rank.scheduling_s / n;
  }
  parts.exposed = {
      {"slowest rank", slowest}, {"startup", startup}, {"bandwidth", bandwidth}, {"scheduling", scheduling}};
  return parts;
}

}  // namespace

void RunRecords::begin(const json& record) {
  if (!is_begun_) cell_ = Cell();
  is_begun_ = true;
  is_over_ = false;
  rates_.clear();
  const json* const config = object_in(record, "config");
  if (config == nullptr) return;
  Configuration& to = cell_.config;
  to.model = text_in(*config, "model");
  to.data = text_in(*config, "data");
  to.strategy = text_in(*config, "strategy");
  to.wire = text_in(*config, "wire");
  to.transport = text_in(*config, "transport");
  to.network = emulated_network(*config);
  to.precision = text_in(*config, "precision");
  to.device = text_in(*config, "device_used");
  to.batch = whole_in(*config, "batch", 0);
  to.ranks = static_cast<int>(whole_in(*config, "ranks", 1));
  to.servers = static_cast<int>(whole_in(*config, "servers", -1));
  to.workers = static_cast<int>(whole_in(*config, "workers", -1));
  to.other.clear();
  for (const auto& [key, usual] : usual_options().items())
    if (const auto value = config->find(key); value != config->end() && *value != usual)
      to.other += fmt::format("{}{} {}", to.other.empty() ? "" : ", ", key, value->dump());
  cell_.samples_per_step = static_cast<double>(to.batch * to.ranks * whole_in(*config, "accumulate", 1));
  if (const json* const environment = object_in(record, "environment"))
    cell_.environment = std::make_shared<const json>(*environment);
  cell_.nodes.clear();
  std::vector<std::string> hosts;
  if (const json* const nodes = array_in(record, "nodes"))
    for (const json& node : *nodes) {
      const json* const ranks = array_in(node, "ranks");
      cell_.nodes.push_back({text_in(node, "host"), ranks == nullptr ? 0 : static_cast<int>(ranks->size()), ""});
      hosts.push_back(cell_.nodes.back().name);
    }
  to.nodes = static_cast<int>(hosts.size());
  cell_.node_list = compress_node_list(hosts);
}

void RunRecords::add_epoch(const json& record) {
  EpochTimes epoch;
  epoch.epoch = static_cast<int>(whole_in(record, "epoch", 0));
  epoch.train_s = number_in(record, "train_s");
  epoch.test_s = number_in(record, "test_s");
  epoch.test_accuracy = number_in(record, "test_accuracy");
  epoch.loss = number_in(record, "train_loss");
  epoch.rates = std::move(rates_);
  rates_.clear();
  if (const json* const ranks = array_in(record, "ranks"))
    for (const json& rank : *ranks)
      epoch.ranks.push_back({static_cast<int>(epoch.ranks.size()), "", number_in(rank, "train_s"),
                             number_in(rank, "comm_s"), number_in(rank, "comm_exposed_s"),
                             number_in(rank, "data_wait_s")});
  if (epoch.test_accuracy) cell_.test_accuracy = epoch.test_accuracy;
  const std::vector<double> steps = numbers_in(record, "step_s");
  cell_.step_s.insert(cell_.step_s.end(), steps.begin(), steps.end());
  cell_.run_s += epoch.train_s.value_or(0);
  cell_.steps = whole_in(record, "step", cell_.steps);
  cell_.epochs.push_back(std::move(epoch));
}

void RunRecords::add(const json& record) {
  const std::string kind = text_in(record, "record");
  if (kind == "run") {
    begin(record);
  } else if (kind == "progress") {
    rates_.push_back({whole_in(record, "step", 0), number_in(record, "data_per_s").value_or(0)});
  } else if (kind == "epoch") {
    add_epoch(record);
  } else if (kind == "explain") {
    cell_.parts = mean_parts(record.get<StepBreakdown>());
  } else if (kind == "summary") {
    is_over_ = true;
    cell_.config.transport = text_in(record, "transport");  // which it was, where "auto" was asked for
    cell_.steps = whole_in(record, "steps", cell_.steps);
  }
}

std::optional<Cell> RunRecords::cell() const {
  if (!is_begun_) return std::nullopt;
  Cell cell = cell_;
  if (!is_over_) {
    cell.is_failed = true;
    cell.error = "the run has no summary: it was stopped, or is still going on";
  }
  return cell;
}

}  // namespace tutti
