#include "sim/published_table.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/names.h"
#include "published/strategies_table.h"
#include "sim/computed_profile.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = {"10gbe", "100gbib", "100gbe"};
  return names;
}

/// "ResNet-50" and "resnet50" are one: lower case, without what separates words.
std::string plain(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The name that is ours for one that the table has.
std::string our_name(const PublishedText& text, std::size_t line, const std::string& kind, const std::string& written,
                     const std::vector<std::string>& ours) {
  for (const std::string& name : ours)
    if (plain(name) == plain(written)) return name;
  refuse_line(text, line, unknown_name(kind, written, ours));
}

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
/// hashed (djb2) to a server. Gradients merged to one tensor are declared last, behind all gradients and parameters.
void place_by_hash(Plan& plan, int servers) {
  std::vector<std::string> names;
  for (const GradientSlot& slot : plan.slots) names.push_back(slot.name);
  std::sort(names.begin(), names.end());
  for (Transfer& transfer : plan.transfers) {
    const auto bracket = transfer.name.find('[');
    const auto found = std::find(names.begin(), names.end(), transfer.name.substr(0, bracket));
    const int64_t place = found == names.end() ? 2 * static_cast<int64_t>(names.size()) : found - names.begin();
    const auto part = bracket == std::string::npos ? 0 : std::stoll(transfer.name.substr(bracket + 1)) - 1;
    uint64_t hash = 5381;
    for (const char digit : std::to_string((place << 16) + part)) hash = hash * 33 + static_cast<uint64_t>(digit);
    transfer.server = static_cast<int>(hash % static_cast<uint64_t>(servers));
  }
}

}  // namespace

std::vector<PublishedRow> parse_published(const std::string& content, const std::string& file) {
  PublishedText text = published_text(file, content);
  std::vector<PublishedRow> rows;
  if (!has_strategies(text))
    throw Error(
        "{}: no table of strategies in it ('| DNN | BS | CONNECTION | METHOD | …', or columns strategy, ranks and "
        "samples_per_s)",
        file);
  for (const StrategiesRow& written : read_strategies(text)) {
    PublishedRow row;
    row.model = our_name(text, written.line, "model", written.model, shape_names());
    const std::string network = written.network.substr(0, written.network.find(" with "));  // "10GbE with TCP/IP"
    row.network = our_name(text, written.line, "network", network, network_names());
    row.method = written.method;
    row.batch = written.batch;
    for (const PublishedRate& rate : written.rates) {
      if (rate.samples_per_s <= 0 || row.batch < 1) refuse_line(text, written.line, "nothing is trained in it");
      if (rate.is_baseline()) row.baseline = rate.samples_per_s;
    }
    if (row.baseline <= 0) refuse_line(text, written.line, "the samples/s of a single GPU are missing");
    for (const PublishedRate& rate : written.rates) {
      if (rate.is_baseline()) continue;
      row.ranks = rate.ranks;
      row.throughput = rate.samples_per_s;
      row.deviation = rate.deviation.value_or(0);
      rows.push_back(row);
    }
  }
  if (rows.empty()) throw Error("{}: its table has no results", file);
  // Rows of a fast network that repeat those of a slow one, where others of the fast network are far ahead.
  for (PublishedRow& row : rows)
    row.is_mislabelled = row.network == "100gbe" && (row.model == "resnet50" || row.model == "bert-large") &&
                         row.ranks > 4 && (row.method == "BSP-PS" || row.method == "WFBP-PS");
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
  // BytePS's scripts train everything with SGD, Horovod's BERT with Adam.
  run.optimizer = has_servers || row.model.rfind("resnet", 0) == 0 ? "sgd" : "adam";
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
  if (has_servers) place_by_hash(run.plan, options.servers);
  return run;
}

}  // namespace tutti
