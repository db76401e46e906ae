#include "sweep/cells.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

using nlohmann::json;

// What one rank, which talks to nobody, does not have.
const std::vector<std::string> kBetweenRanks = {"strategy", "wire", "transport", "network", "servers"};
const std::set<std::string> kNumbers = {"batch", "ranks", "nodes", "servers", "workers"};

// More than anybody has time for; a slip in a file should not take all memory.
constexpr double kMostCells = 100'000;

/// What is varied and what special cases say, for one value of each axis.
struct Configuration {
  Settings axes;
  bool is_baseline = false;

  bool has_one_rank() const {
    const auto ranks = axes.find("ranks");
    return ranks != axes.end() && ranks->second == "1";
  }
};

std::vector<Axis> axes_in_order(const Sweep& sweep) {
  std::vector<Axis> axes = sweep.axes;
  std::string fastest = sweep.compare;
  if (fastest.empty()) fastest = "strategy";  // what most sweeps compare, if it is there
  std::stable_partition(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name != fastest; });
  return axes;
}

/// One value of each axis, the last one varying fastest.
std::vector<Settings> combinations(const std::vector<Axis>& axes) {
  std::vector<Settings> all = {{}};
  for (const Axis& axis : axes) {
    std::vector<Settings> longer;
    for (const Settings& settings : all) {
      for (const std::string& value : axis.values) {
        longer.push_back(settings);
        longer.back()[axis.name] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

Configuration without_what_one_rank_lacks(Configuration configuration) {
  if (configuration.has_one_rank())
    for (const std::string& axis : kBetweenRanks) configuration.axes.erase(axis);
  return configuration;
}

std::vector<Configuration> configurations(const Sweep& sweep) {
  std::vector<Configuration> all;
  const auto add = [&all](const Configuration& configuration) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Configuration& other) { return other.axes == configuration.axes; });
    if (found == all.end()) {
      all.push_back(configuration);
    } else {
      found->is_baseline |= configuration.is_baseline;
    }
  };
  for (const Settings& settings : combinations(axes_in_order(sweep))) {
    if (std::any_of(sweep.leave_out.begin(), sweep.leave_out.end(),
                    [&](const Pattern& pattern) { return matches(pattern, settings); }))
      continue;
    const Configuration own = without_what_one_rank_lacks({settings, false});
    if (!sweep.baseline.empty()) {
      Configuration baseline{settings, true};
      for (const auto& [axis, value] : sweep.baseline) baseline.axes[axis] = value;
      add(without_what_one_rank_lacks(std::move(baseline)));  // before the first cell that needs it
    }
    add(own);
  }
  return all;
}

/// "ranks4" for a number, the value itself for a word; without anything that is awkward in a file's name.
std::string id_part(const std::string& axis, const std::string& value) {
  const bool is_number = !value.empty() && (std::isdigit(static_cast<unsigned char>(value[0])) != 0) &&
                         value.find_first_not_of("0123456789.") == std::string::npos;
  std::string part = is_number ? axis + value : value;
  for (char& c : part)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-') c = '_';
  return part;
}

std::string make_label(const Sweep& sweep, const Configuration& configuration) {
  std::string label;
  const auto add = [&](const std::string& axis) {
    const auto value = configuration.axes.find(axis);
    if (value != configuration.axes.end()) label += (label.empty() ? "" : "-") + id_part(axis, value->second);
  };
  for (const Axis& axis : sweep.axes)
    if (axis.values.size() > 1 ||
        (sweep.baseline.count(axis.name) > 0 && axis.values[0] != sweep.baseline.at(axis.name)))
      add(axis.name);
  // Axes that only the baseline names.
  for (const auto& [axis, value] : sweep.baseline)
    if (std::none_of(sweep.axes.begin(), sweep.axes.end(), [&axis = axis](const Axis& a) { return a.name == axis; }))
      add(axis);
  return label.empty() ? "cell" : label;
}

int whole_number(const Settings& settings, const std::string& name, int otherwise, int least) {
  const auto found = settings.find(name);
  if (found == settings.end()) return otherwise;
  const double value = number_setting("'" + name + "'", found->second, least);
  if (value != static_cast<int>(value)) throw UsageError("'{}' is {}: a whole number is needed", name, found->second);
  return static_cast<int>(value);
}

SweepCell make_cell(const Sweep& sweep, const Configuration& configuration) {
  SweepCell cell;
  cell.options = sweep.options;
  for (const SpecialCase& special : sweep.special_cases) {
    if (!matches(special.when, configuration.axes)) continue;
    for (const auto& [name, value] : special.set) cell.options[name] = value;
  }
  for (const auto& [name, value] : configuration.axes) {
    if (name == "network") continue;
    cell.options[name] = value;
  }
  if (configuration.has_one_rank())
    for (const std::string& name : kBetweenRanks) cell.options.erase(name);
  // A record names these whether they are varied or not.
  cell.settings = configuration.axes;
  for (const std::string& axis : axis_names())
    if (const auto option = cell.options.find(axis); option != cell.options.end()) cell.settings[axis] = option->second;
  cell.config = describe_config(cell.settings);
  cell.options.erase("nodes");
  cell.is_baseline = configuration.is_baseline;
  cell.ranks = whole_number(cell.settings, "ranks", 0, 1);
  cell.nodes = whole_number(cell.settings, "nodes", 1, 1);
  cell.servers = whole_number(cell.settings, "servers", 0, 0);
  if (cell.nodes > 1 && cell.ranks > 0 && cell.ranks < cell.nodes)
    throw UsageError("{} nodes with {} rank{}: leave that pair out, or give each node a rank", cell.nodes, cell.ranks,
                     cell.ranks == 1 ? "" : "s");
  if (const auto network = configuration.axes.find("network"); network != configuration.axes.end()) {
    cell.network = network->second;
    cell.emulated = sweep.networks.at(network->second);
  }
  cell.label = make_label(sweep, configuration);
  return cell;
}

}  // namespace

std::vector<SweepCell> expand(const Sweep& sweep) {
  double size = sweep.repeats;
  for (const Axis& axis : sweep.axes) size *= static_cast<double>(axis.values.size());
  if (size > kMostCells) throw UsageError("a sweep of {:g} cells: at most {:g} are possible", size, kMostCells);
  std::vector<SweepCell> once;
  std::map<std::string, int> labels;
  for (const Configuration& configuration : configurations(sweep)) {
    once.push_back(make_cell(sweep, configuration));
    if (const int times = ++labels[once.back().label]; times > 1) once.back().label += "_" + std::to_string(times);
  }
  std::vector<SweepCell> all;
  for (int repeat = 1; repeat <= sweep.repeats; ++repeat) {
    for (SweepCell cell : once) {
      cell.repeat = repeat;
      cell.id = fmt::format("{}.{}", cell.label, repeat);
      cell.trace = sweep.trace && repeat == 1;
      all.push_back(std::move(cell));
    }
    if (repeat % 2 == 0) std::reverse(all.end() - static_cast<std::ptrdiff_t>(once.size()), all.end());
  }
  return all;
}

std::vector<SweepCell> only(const std::vector<SweepCell>& cells, const std::vector<std::string>& choices,
                            const Sweep& sweep) {
  Pattern wanted;
  for (const std::string& choice : choices) {
    const std::size_t equals = choice.find('=');
    if (equals == std::string::npos)
      throw UsageError("--only {}: write axis=value, as in --only strategy=bsp,ranks=2", choice);
    const std::string name = choice.substr(0, equals);
    const std::string value = choice.substr(equals + 1);
    std::vector<std::string> known;
    const Axis* axis = nullptr;
    for (const Axis& one : sweep.axes) {
      known.push_back(one.name);
      if (one.name == name) axis = &one;
    }
    if (axis == nullptr) throw UsageError("--only {}: {}", choice, unknown_name("axis", name, known));
    if (std::find(axis->values.begin(), axis->values.end(), value) == axis->values.end())
      throw UsageError("--only {}: {}", choice, unknown_name(name, value, axis->values));
    wanted[name].insert(value);
  }
  std::vector<SweepCell> chosen;
  for (const SweepCell& cell : cells) {
    Pattern asked = wanted;
    if (cell.is_baseline) {
      // It is needed by cells that differ from it where it has settings of its own, and where one rank has none.
      for (const auto& [axis, values] : wanted)
        if (sweep.baseline.count(axis) > 0 || cell.settings.count(axis) == 0) asked.erase(axis);
    }
    if (matches(asked, cell.settings)) chosen.push_back(cell);
  }
  return chosen;
}

json describe_config(const Settings& settings) {
  json config = json::object();
  for (const auto& [name, value] : settings) {
    if (kNumbers.count(name) > 0) {
      config[name] = static_cast<int64_t>(number_setting("'" + name + "'", value, 0));
    } else {
      config[name] = value;
    }
  }
  return config;
}

}  // namespace tutti::sweep
