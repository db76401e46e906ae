#include "sim/published_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/error.h"
#include "plan/partitions.h"
#include "plan/strategy.h"

namespace tutti {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line);
  for (std::string cell; std::getline(parts, cell, '|');) {
    const auto first = cell.find_first_not_of(" \t\r"), last = cell.find_last_not_of(" \t\r");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  if (!cells.empty()) cells.erase(cells.begin());  // before the first bar
  return cells;
}

/// The names that the table uses, and ours.
const std::map<std::string, std::string> kModels = {{"ResNet-50", "resnet50"}, {"BERT-Base", "bert-base"}};
const std::map<std::string, std::string> kNetworks = {
    {"10GbE with TCP/IP", "10gbe"}, {"100GbIB with RDMA", "100gbib"}, {"100GbE with TCP/IP", "100gbe"}};
constexpr int kSizes[] = {4, 8, 16, 32};  // the columns after the baseline

/// What MG-WFBP's authors had written down for their own clusters, and planned with: microseconds and ns per byte.
struct Belief {
  double startup_us, per_byte_ns;
};
Belief mgwfbp_belief(const std::string& network, int ranks) {
  static const std::map<int, Belief> slow = {
      {4, {42, 0.206}}, {8, {523, 0.857}}, {16, {908, 0.740}}, {32, {4043, 0.864}}};
  static const std::map<int, Belief> fast = {
      {4, {42, 0.206}}, {8, {97.5, 0.306}}, {16, {707.5, 0.406}}, {32, {406.3, 0.491}}};
  const auto& table = network == "10gbe" ? slow : fast;
  const auto found = table.find(ranks);
  if (found == table.end()) throw Error("MG-WFBP's published plan knows 4, 8, 16 and 32 ranks, and not {}", ranks);
  return found->second;
}

/// BytePS numbers tensors in the order of their names, partitions of a tensor follow, and the digits of the number are
/// hashed (djb2) to a server.
void place_by_hash(Plan& plan, int servers) {
  std::vector<std::string> names;
  for (const GradientSlot& slot : plan.slots) names.push_back(slot.name);
  std::sort(names.begin(), names.end());
  for (Transfer& transfer : plan.transfers) {
    const auto bracket = transfer.name.find('[');
    const auto place = std::find(names.begin(), names.end(), transfer.name.substr(0, bracket));
    const auto part = bracket == std::string::npos ? 0 : std::stoll(transfer.name.substr(bracket + 1)) - 1;
    uint64_t hash = 5381;
    for (const char digit : std::to_string((static_cast<int64_t>(place - names.begin()) << 16) + part))
      hash = hash * 33 + static_cast<uint64_t>(digit);
    transfer.server = static_cast<int>(hash % static_cast<uint64_t>(servers));
  }
}

}  // namespace

std::vector<PublishedRow> parse_published(const std::string& text, const std::string& file) {
  std::vector<PublishedRow> rows;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < 9 || kModels.count(cells[0]) == 0) continue;
    const auto network = kNetworks.find(cells[2]);
    if (network == kNetworks.end()) throw Error("{}:{}: unknown network '{}'", file, number, cells[2]);
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      PublishedRow row;
      row.model = kModels.at(cells[0]);
      row.network = network->second;
      row.method = cells[3];
      row.ranks = kSizes[i];
      char plus_minus[3] = {};
      try {
        row.batch = std::stoll(cells[1]);
        row.baseline = std::stod(cells[4]);
      } catch (const std::exception&) {
        throw Error("{}:{}: a batch and a baseline are expected, found '{}' and '{}'", file, number, cells[1],
                    cells[4]);
      }
      if (std::sscanf(cells[5 + i].c_str(), "%lf %2s %lf", &row.throughput, plus_minus, &row.deviation) != 3)
        throw Error("{}:{}: 'samples/s +- deviation' is expected, found '{}'", file, number, cells[5 + i]);
      rows.push_back(row);
    }
  }
  if (rows.empty()) throw Error("{}: no rows of a published table in it", file);
  // Rows of a fast network that repeat those of a slow one, where others of the fast network are far ahead.
  for (PublishedRow& row : rows)
    row.is_mislabelled = row.network == "100gbe" && row.model == "resnet50" && row.ranks > 4 &&
                         (row.method == "BSP-PS" || row.method == "WFBP-PS");
  return rows;
}

PublishedRun run_of(const PublishedRow& row) {
  constexpr int64_t kPushPullPartition = 4'096'000, kPartition = 4 * (4 << 20), kCredit = 4 * (16 << 20);
  constexpr int kDevicesPerNode = 4;
  constexpr double kTimerWait = 0.2e-3;  // seconds
  PublishedRun run;
  Device device{"RTX 2080 Ti", 13.4e12, 616e9, 0.86, 0.25};
  ShapeOptions shape;
  shape.decodes_all_tokens = true;
  run.profile = scaled_to(compute_profile(model_shape(row.model, shape), device, static_cast<double>(row.batch)),
                          static_cast<double>(row.batch) / row.baseline);
  const bool has_servers = row.method.size() > 3 && row.method.substr(row.method.size() - 3) == "-PS";
  run.optimizer = row.model == "bert-base" ? "adam" : "sgd";
  Profile planned = run.profile;
  StrategyOptions options;
  Links links;
  std::string strategy;
  if (has_servers) {
    options.partition_bytes = kPushPullPartition;
    options.servers = std::max(1, row.ranks / kDevicesPerNode);
    // What was called ByteScheduler-PS orders the servers' work, and the optimizer still waits for everything.
    strategy = row.method == "BSP-PS" ? "bsp-ps" : "wfbp-ps";
  } else if (row.method == "BSP-A2A") {
    strategy = "bsp";
  } else if (row.method == "WFBP-A2A") {
    strategy = "wfbp";
  } else if (row.method == "MG-WFBP") {
    strategy = "mgwfbp";
    // Their timer waits for the device at each gradient, which makes small layers look longer than they are.
    double waited_s = 0;
    for (GradientProfile& gradient : planned.gradients) gradient.ready_s += waited_s += kTimerWait;
    planned.backward_s += waited_s;
    const Belief belief = mgwfbp_belief(row.network, row.ranks);
    links.all_reduce.startup_s = belief.startup_us * 1e-6;
    links.all_reduce.per_byte_s = belief.per_byte_ns * 1e-9;
  } else if (row.method == "ByteScheduler-A2A") {
    strategy = "bytescheduler";
    options.partition_bytes = kPartition;
    options.credit_bytes = kCredit;  // links that cost nothing make it the order of backward, as its users saw it work
  } else {
    throw Error("unknown published method '{}'", row.method);
  }
  run.plan = find_strategy(strategy).make_plan(planned, links, row.ranks, options);
  if (has_servers) {
    if (row.method == "BSP-PS") {  // tensor by tensor all the same, only later
      run.plan = find_strategy("wfbp-ps").make_plan(run.profile, links, row.ranks, options);
      for (Transfer& transfer : run.plan.transfers) transfer.starts = StartsWhen::backward_done;
    }
    place_by_hash(run.plan, options.servers);
  }
  return run;
}

}  // namespace tutti
