#include "sweep/cell_record.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/environment.h"
#include "base/files.h"
#include "report/node_list.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A run's records by kind.
class Run {
 public:
  explicit Run(const std::vector<json>& records) {
    for (const json& record : records) kinds_[record.value("record", "")].push_back(&record);
  }
  const std::vector<const json*>& all(const std::string& kind) const {
    static const std::vector<const json*> none;
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? none : found->second;
  }
  /// The last one, or an empty object.
  const json& last(const std::string& kind) const {
    static const json nothing = json::object();
    return all(kind).empty() ? nothing : *all(kind).back();
  }

 private:
  std::map<std::string, std::vector<const json*>> kinds_;
};

void copy(json& to, const char* as, const json& from, const char* name) {
  if (from.contains(name) && !from.at(name).is_null()) to[as] = from.at(name);
}

/// The sweep's settings, completed with what the run says of itself.
json full_config(const SweepCell& cell, const Run& run) {
  json config = describe_config(cell.settings);
  const json& used = run.last("run").value("config", json::object());
  const bool has_one_rank = used.value("ranks", cell.ranks) == 1;
  for (const char* name : {"model", "batch", "data", "workers", "precision", "ranks"}) copy(config, name, used, name);
  if (!has_one_rank)
    for (const char* name : {"strategy", "wire"}) copy(config, name, used, name);
  if (!has_one_rank && used.value("servers", 0) > 0) copy(config, "servers", used, "servers");
  if (!has_one_rank) copy(config, "transport", run.last("summary"), "transport");
  copy(config, "device", run.last("summary"), "device");
  config["nodes"] = cell.nodes;
  return config;
}

std::string node_of(const json& nodes, std::size_t rank) {
  for (const json& node : nodes)
    for (const json& member : node.at("ranks"))
      if (member == rank) return node.at("host");
  return "";
}

json describe_epochs(const Run& run) {
  const json nodes = run.last("run").value("nodes", json::array());
  json epochs = json::array();
  for (const json* record : run.all("epoch")) {
    const int64_t number = record->at("epoch");
    json epoch = {{"epoch", number}, {"train_s", record->at("train_s")}};
    for (const char* name : {"test_s", "test_accuracy", "test_dice", "test_loss"}) copy(epoch, name, *record, name);
    copy(epoch, "loss", *record, "train_loss");
    epoch["data_per_s"] = json::array();
    for (const json* progress : run.all("progress"))
      if (progress->value("epoch", int64_t{-1}) + 1 == number)
        epoch["data_per_s"].push_back({{"step", progress->at("step")}, {"value", progress->at("data_per_s")}});
    epoch["ranks"] = json::array();
    const json& ranks = record->at("ranks");
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      json one = {{"rank", rank}, {"node", node_of(nodes, rank)}};
      for (const char* name : {"train_s", "comm_s", "comm_exposed_s", "data_wait_s"})
        copy(one, name, ranks[rank], name);
      epoch["ranks"].push_back(std::move(one));
    }
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

/// Means over ranks.
json describe_breakdown(const json& explain) {
  const json& ranks = explain.at("ranks");
  const auto mean = [&](const char* name) {
    double sum = 0;
    for (const json& rank : ranks) sum += rank.value(name, 0.0);
    return sum / static_cast<double>(std::max<std::size_t>(1, ranks.size()));
  };
  return {{"compute_s", mean("compute_s")},
          {"exposed",
           {{"slowest rank", mean("slowest_rank_s")},
            {"startup", mean("startup_s")},
            {"bandwidth", mean("bandwidth_s")},
            {"scheduling", mean("scheduling_s")}}},
          {"data_wait_s", mean("data_wait_s")},
          {"optimizer_s", mean("optimizer_s")}};
}

void add_nodes(json& record, const json& nodes) {
  std::vector<std::string> hosts;
  record["nodes"] = json::array();
  for (const json& node : nodes) {
    hosts.push_back(node.at("host"));
    record["nodes"].push_back({{"name", node.at("host")}, {"ranks", node.at("ranks").size()}});
  }
  record["node_list"] = compress_node_list(hosts);
}

void add_measurements(json& record, const Run& run) {
  json step_s = json::array();
  for (const json* epoch : run.all("epoch"))
    for (const json& time : epoch->at("step_s")) step_s.push_back(time);
  record["step_s"] = std::move(step_s);
  record["epochs"] = describe_epochs(run);
  const json& summary = run.last("summary");
  copy(record, "steps", summary, "steps");
  copy(record, "run_s", summary, "train_s");
  for (const char* name : {"test_accuracy", "test_dice", "test_loss", "peak_rss_bytes"})
    copy(record, name, summary, name);
  if (run.last("explain").contains("ranks")) record["breakdown"] = describe_breakdown(run.last("explain"));
  if (run.last("run").contains("config")) {
    const json& config = run.last("run").at("config");
    record["samples_per_step"] =
        config.value("ranks", int64_t{1}) * config.value("batch", int64_t{0}) * config.value("accumulate", int64_t{1});
  }
  if (run.last("run").contains("nodes")) add_nodes(record, run.last("run").at("nodes"));
}

/// Why a run that has ended well all the same does not count, or "".
std::string what_is_missing(const json& record, const Run& run) {
  if (run.last("run").empty()) return "it ended without a record of what it ran";
  if (run.last("summary").empty()) return "it ended without a summary";
  if (record.at("step_s").empty()) return "it ended without the time of a single step";
  if (record.at("step_s").size() != record.value("steps", std::size_t{0}))
    return fmt::format("it has the times of {} steps instead of {}", record.at("step_s").size(),
                       record.value("steps", 0));
  return "";
}

/// Short, and text that JSON can hold: a program may print anything.
std::string readable(std::string text) {
  constexpr std::size_t kLongest = 1000;
  if (text.size() > kLongest) text.resize(kLongest);
  try {
    [[maybe_unused]] const std::string written = json(text).dump();
  } catch (const json::exception&) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

}  // namespace

std::vector<json> read_run_records(const fs::path& run_folder) {
  const fs::path file = run_folder / "records.jsonl";
  std::vector<json> records;
  if (!fs::exists(file)) return records;
  const std::string text = read_file(file);
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    records.push_back(json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end)));
  return records;
}

std::string last_complaint(const std::string& output) {
  std::istringstream lines(output);
  std::string own;
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    last = line;
    if (line.rfind("[rank ", 0) == 0) line = line.substr(std::min(line.size(), line.find("] ") + 2));
    if (line.rfind("tutti: ", 0) == 0) own = line.substr(7);
  }
  return readable(own.empty() ? last : own);
}

json make_cell_record(const SweepCell& cell, const std::string& sweep, int warmup_steps, const fs::path& run_folder,
                      const Attempt& attempt) {
  json record = {{"source", "measured"},
                 {"sweep", sweep},
                 {"cell", cell.id},
                 {"repeat", cell.repeat},
                 {"baseline", cell.is_baseline},
                 {"load", attempt.load},
                 {"command", attempt.command},
                 {"launcher", attempt.launcher},
                 {"wall_s", attempt.wall_s},
                 {"warmup_steps", warmup_steps},
                 {"config", describe_config(cell.settings)},
                 {"environment", describe_environment("")}};
  if (!cell.network.empty())
    record["network"] = {{"name", cell.network},
                         {"emulated", cell.emulated.is_slowed()},
                         {"gbps", cell.emulated.gbps},
                         {"startup_us", cell.emulated.startup_us},
                         {"note", cell.emulated.note}};
  std::string error = attempt.error;
  try {
    const std::vector<json> records = read_run_records(run_folder);
    const Run run(records);
    record["config"] = full_config(cell, run);
    copy(record, "environment", run.last("run"), "environment");
    add_measurements(record, run);
    if (error.empty()) error = what_is_missing(record, run);
  } catch (const json::exception& unreadable) {
    if (error.empty()) error = fmt::format("its records cannot be read: {}", unreadable.what());
  }
  record["status"] = error.empty() ? "done" : "failed";
  if (!error.empty()) record["error"] = error;
  return record;
}

}  // namespace tutti::sweep
