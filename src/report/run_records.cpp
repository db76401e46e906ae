#include "report/run_records.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "options/option_table.h"
#include "record/node_list.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string emulated_network(const RunConfig& config) {
  const double gbps = config.link_gbps, startup_us = config.link_startup_us;
  if (gbps <= 0 && startup_us <= 0) return "";
  return fmt::format("{}{}{}", gbps > 0 ? fmt::format("{:g} Gbit/s", gbps) : "", gbps > 0 && startup_us > 0 ? ", " : "",
                     startup_us > 0 ? fmt::format("{:g} us", startup_us) : "");
}

std::string node_of(const std::vector<NodeRanks>& nodes, int rank) {
  for (const NodeRanks& node : nodes)
    for (const int member : node.ranks)
      if (member == rank) return node.host;
  return "";
}

}  // namespace

void RunRecords::begin(RunRecord record) {
  summary_.reset();
  rates_.clear();
  config_ = record.parsed;
  Configuration& to = cell_.config;
  to = {};
  to.model = config_.model;
  to.data = config_.data;
  to.strategy = config_.strategy;
  to.wire = config_.wire;
  to.transport = config_.transport;
  to.network = emulated_network(config_);
  to.precision = config_.precision;
  to.device = config_.device_used;
  to.batch = config_.batch;
  to.ranks = config_.ranks;
  to.servers = config_.servers;
  to.workers = config_.workers;
  for (const auto& [key, usual] : usual_options().items())
    if (const auto value = record.config.find(key); value != record.config.end() && *value != usual)
      to.other += fmt::format("{}{} {}", to.other.empty() ? "" : ", ", key, value->dump());
  cell_.samples_per_step = static_cast<double>(to.batch * to.ranks * config_.accumulate);
  if (record.environment) cell_.environment = std::make_shared<const Environment>(*record.environment);
  cell_.nodes.clear();
  std::vector<std::string> hosts;
  for (const NodeRanks& node : record.nodes) {
    cell_.nodes.push_back({node.host, static_cast<int>(node.ranks.size()), ""});
    hosts.push_back(node.host);
  }
  to.nodes = static_cast<int>(hosts.size());
  cell_.node_list = compress_node_list(hosts);
  run_ = std::move(record);
}

void RunRecords::add_epoch(const EpochRecord& record) {
  EpochTimes epoch;
  epoch.epoch = static_cast<int>(record.epoch);
  epoch.train_s = record.train_s;
  epoch.loss = record.train_loss;
  epoch.rates = std::move(rates_);
  rates_.clear();
  for (const RankEpoch& rank : record.ranks) {
    const int number = static_cast<int>(epoch.ranks.size());
    epoch.ranks.push_back({number, run_ ? node_of(run_->nodes, number) : "", rank.train_s, rank.comm_s,
                           rank.comm_exposed_s, rank.data_wait_s});
  }
  epoch.test_s = record.test_s;
  if (record.test) {
    epoch.test_accuracy = record.test->metric("accuracy");
    epoch.test_dice = record.test->metric("dice");
    epoch.test_loss = record.test->loss;
    if (epoch.test_accuracy) cell_.test_accuracy = epoch.test_accuracy;
  }
  cell_.step_s.insert(cell_.step_s.end(), record.step_s.begin(), record.step_s.end());
  cell_.run_s += record.train_s;
  if (record.step > 0) cell_.steps = record.step;
  cell_.epochs.push_back(std::move(epoch));
}

void RunRecords::end(SummaryRecord record) {
  cell_.config.transport = record.transport;
  if (record.steps > 0) cell_.steps = record.steps;
  cell_.peak_rss_bytes = record.peak_rss_bytes;
  if (record.is_tested) {
    cell_.test_accuracy = record.test.metric("accuracy");
    cell_.test_dice = record.test.metric("dice");
    cell_.test_loss = record.test.loss;
  }
  summary_ = std::move(record);
}

void RunRecords::add(const RecordReader& reader) {
  if (reader.is<RunRecord>()) {
    begin(reader.as<RunRecord>());
  } else if (reader.is<ProgressRecord>()) {
    const auto record = reader.as<ProgressRecord>();
    rates_.push_back({record.step, record.data_per_s, record.loss});
  } else if (reader.is<EpochRecord>()) {
    add_epoch(reader.as<EpochRecord>());
  } else if (reader.is<StepBreakdown>()) {
    cell_.parts = parts_of(reader.as<StepBreakdown>());
  } else if (reader.is<SummaryRecord>()) {
    end(reader.as<SummaryRecord>());
  }
}

std::optional<Cell> RunRecords::cell() const {
  if (!run_) return std::nullopt;
  Cell cell = cell_;
  if (!summary_) {
    cell.is_failed = true;
    cell.error = "the run has no summary: it was stopped before its end";
  }
  return cell;
}

std::optional<Cell> RunRecords::cell_so_far() const {
  std::optional<Cell> cell = RunRecords::cell();
  if (!cell || !cell->is_failed) return cell;
  cell->is_failed = false;
  cell->is_running = true;
  cell->error.clear();
  if (!rates_.empty()) {
    cell->steps = rates_.back().step;
    EpochTimes begun;
    begun.epoch = static_cast<int>(cell->epochs.size()) + 1;
    begun.rates = rates_;
    cell->epochs.push_back(std::move(begun));
  }
  return cell;
}

}  // namespace tutti
