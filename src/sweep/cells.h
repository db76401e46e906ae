#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace tutti::sweep {

/// One measurement of a sweep: one training run.
struct SweepCell {
  std::string id;     // names its folder; unique in the sweep
  std::string label;  // the id without the repeat: the same for all repeats of a configuration
  Settings settings;  // on the axes, and what the options say about those
  Settings options;   // of `tutti train`, without their dashes
  int repeat = 1;
  bool is_baseline = false;
  int ranks = 0;  // 0: what `tutti train` takes by itself
  int nodes = 1;
  int servers = 0;
  std::string network = "";
  EmulatedNetwork emulated;  // what `network` means
  bool trace = false;
};

/// All cells, in the order in which to run them.
///
/// A configuration is one value of each axis, less those left out. With one rank nothing travels: such configurations
/// lose their strategy, wire format, transport, network and servers, and those that become equal are one. A baseline is
/// another configuration with the sweep's baseline settings in place of its own; it is measured in the same sweep.
/// Repeat 1 of everything comes before repeat 2 of anything, and what is compared runs side by side: the axis `compare`
/// varies fastest. Every other repeat runs backwards, so that a machine that gets slower and slower favours nobody.
std::vector<SweepCell> expand(const Sweep& sweep);

/// Keeps cells that have, on each axis named, one of the values given ("strategy=bsp"), and their baselines. Throws
/// UsageError for an axis or a value that the sweep does not have.
std::vector<SweepCell> only(const std::vector<SweepCell>& cells, const std::vector<std::string>& choices,
                            const Sweep& sweep);

/// The settings as a record's "config": numbers as numbers.
nlohmann::json describe_config(const Settings& settings);

void to_json(nlohmann::json& json, const SweepCell& cell);
void from_json(const nlohmann::json& json, SweepCell& cell);

}  // namespace tutti::sweep
