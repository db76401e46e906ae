#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace tutti::sweep {

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

}  // namespace tutti::sweep
