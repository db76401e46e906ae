#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tutti/records.h"

namespace tutti::sweep {

/// Names with values, as the sweep file has them: axes, or options of `tutti train` without their dashes.
using Settings = std::map<std::string, std::string>;

/// A network by name: the one that is there, or a slower one whose speed is imposed on its links.
struct EmulatedNetwork {
  double gbps = 0;        // 0: as fast as it goes
  double startup_us = 0;  // of each collective; not in a cluster in a box, whose links are slow themselves
  std::string note = "";  // what it stands for

  bool is_slowed() const { return gbps > 0 || startup_us > 0; }
};

/// One measurement of a sweep: one training run.
struct SweepCell {
  std::string id;         // names its folder; unique in the sweep
  std::string label;      // the id without the repeat: the same for all repeats of a configuration
  Settings settings;      // on the axes, and what the options say about those
  nlohmann::json config;  // the same as a record's "config" has them, numbers as numbers
  Settings options;       // of `tutti train`, without their dashes
  int repeat = 1;
  bool is_baseline = false;
  int ranks = 0;  // 0: what `tutti train` takes by itself
  int nodes = 1;
  int servers = 0;
  std::string network = "";
  EmulatedNetwork emulated;  // what `network` means
  bool trace = false;
};
void to_json(nlohmann::json& json, const SweepCell& cell);
void from_json(const nlohmann::json& json, SweepCell& cell);

/// sweep.json: what is to be measured.
struct SweepPlan {
  std::string name, title;
  bool is_quick = false;
  std::string command;  // that began it
  std::string file;     // the text of the sweep file
  std::map<std::string, std::vector<std::string>> axes;
  std::vector<std::string> axis_order;
  std::string compare;  // the axis that is compared
  nlohmann::json baseline = nlohmann::json::object();
  int repeats = 1;
  int warmup_steps = 0;
  double timeout_minutes = 0;
  bool keep_weights = false;
  std::optional<Environment> environment;
  std::vector<SweepCell> cells;
};
/// Throws Error naming the file, and what is wrong with it.
SweepPlan read_sweep_plan(const std::filesystem::path& file);
void write_sweep_plan(const std::filesystem::path& file, const SweepPlan& plan);

}  // namespace tutti::sweep
