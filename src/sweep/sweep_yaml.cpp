#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>

#include "base/names.h"
#include "options/option_table.h"
#include "sweep/sweep.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

using Names = std::vector<std::string>;

const Names kKeys = {"title",    "axes",    "compare",      "options",         "where", "networks",     "leave-out",
                     "baseline", "repeats", "warmup-steps", "timeout-minutes", "trace", "keep-weights", "quick"};

/// Reads the file's parts; every complaint names file and line.
class Reader {
 public:
  Reader(std::string file, const Names& train_options, const ProblemOfOption& problem_of)
      : file_(std::move(file)), problem_of_(problem_of) {
    for (const std::string& option : train_options)
      if (option.rfind("--help", 0) != 0 && !is_set_by_sweeps(option.substr(2))) options_.push_back(option.substr(2));
    axes_ = options_;
    for (const std::string& axis : axis_names())
      if (!contains(axes_, axis)) axes_.push_back(axis);
  }

  [[noreturn]] void fail(const YAML::Node& at, const std::string& what) const {
    throw UsageError("{}:{}: {}", file_, at.Mark().line + 1, what);
  }

  /// The entries of a mapping, which has each key once.
  std::vector<std::pair<YAML::Node, YAML::Node>> entries(const YAML::Node& map, const std::string& what) const {
    if (!map.IsMap()) fail(map, what + " needs lines like `name: value`");
    std::vector<std::pair<YAML::Node, YAML::Node>> all;
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) fail(entry.first, "a name is expected before ':'");
      if (!seen.insert(entry.first.Scalar()).second)
        fail(entry.first, fmt::format("'{}' is there twice", entry.first.Scalar()));
      all.emplace_back(entry.first, entry.second);
    }
    return all;
  }

  std::string scalar(const YAML::Node& node, const std::string& what) const {
    if (!node.IsScalar()) fail(node, fmt::format("'{}' needs one value", what));
    return node.Scalar();
  }

  double number(const YAML::Node& node, const std::string& what, double least) const {
    try {
      return number_setting("'" + what + "'", scalar(node, what), least);
    } catch (const UsageError& error) {
      fail(node, error.what());
    }
  }

  bool yes_or_no(const YAML::Node& node, const std::string& what) const {
    const std::string text = scalar(node, what);
    if (text != "true" && text != "false") fail(node, fmt::format("'{}' is true or false, not '{}'", what, text));
    return text == "true";
  }

  Names values(const YAML::Node& node, const std::string& what) const {
    Names all;
    if (node.IsScalar()) {
      all.push_back(node.Scalar());
    } else if (node.IsSequence()) {
      for (const YAML::Node& value : node) all.push_back(scalar(value, what));
    }
    if (all.empty()) fail(node, fmt::format("'{0}' needs values: `{0}: [a, b]`", what));
    return all;
  }

  void check_name(const YAML::Node& node, const char* kind, const Names& known) const {
    if (contains(known, node.Scalar())) return;
    const std::string nearest = nearest_name(node.Scalar(), known);
    fail(node, fmt::format("unknown {} '{}'{}", kind, node.Scalar(),
                           nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  }

  /// Before anything runs, rather than in each of its cells.
  void check_value(const std::string& name, const YAML::Node& value) const {
    if (!problem_of_ || !contains(options_, name)) return;
    if (const std::string problem = problem_of_(name, value.Scalar()); !problem.empty()) fail(value, problem);
  }

  Settings settings(const YAML::Node& map, const char* what, const char* kind, const Names& known) const {
    Settings all;
    for (const auto& [name, value] : entries(map, what)) {
      check_name(name, kind, known);
      all[name.Scalar()] = scalar(value, name.Scalar());
      check_value(name.Scalar(), value);
    }
    return all;
  }

  Settings train_options(const YAML::Node& map, const char* what) const {
    return settings(map, what, "option of `tutti train`", options_);
  }

  std::vector<Axis> axes(const YAML::Node& map) const {
    std::vector<Axis> all;
    for (const auto& [name, value] : entries(map, "'axes'")) {
      check_name(name, "axis", axes_);
      const Names found = values(value, name.Scalar());
      if (value.IsScalar()) check_value(name.Scalar(), value);
      for (const YAML::Node& one : value) check_value(name.Scalar(), one);  // none, where it is no list
      for (const std::string& one : found)
        if (std::count(found.begin(), found.end(), one) > 1)
          fail(value, fmt::format("the axis '{}' has '{}' twice", name.Scalar(), one));
      if (name.Scalar() == "ranks" || name.Scalar() == "nodes")
        for (const std::string& one : found)
          number_setting(fmt::format("{}: the axis '{}'", file_, name.Scalar()), one, 1);
      all.push_back({name.Scalar(), found});
    }
    return all;
  }

  Pattern pattern(const YAML::Node& map, const char* what, const std::vector<Axis>& axes) const {
    Pattern found;
    for (const auto& [name, value] : entries(map, what)) {
      const auto axis =
          std::find_if(axes.begin(), axes.end(), [&name = name](const Axis& a) { return a.name == name.Scalar(); });
      if (axis == axes.end()) fail(name, fmt::format("{}: this sweep has no axis '{}'", what, name.Scalar()));
      for (const std::string& one : values(value, name.Scalar())) {
        if (!contains(axis->values, one))
          fail(value, fmt::format("{}: the axis '{}' has no value '{}'", what, axis->name, one));
        found[axis->name].insert(one);
      }
    }
    return found;
  }

  EmulatedNetwork network(const YAML::Node& map, const std::string& name) const {
    EmulatedNetwork found;
    for (const auto& [key, value] : entries(map, fmt::format("the network '{}'", name))) {
      check_name(key, "property of a network", {"gbps", "startup-us", "note"});
      if (key.Scalar() == "gbps") found.gbps = number(value, "gbps", 0);
      if (key.Scalar() == "startup-us") found.startup_us = number(value, "startup-us", 0);
      if (key.Scalar() == "note") found.note = scalar(value, "note");
    }
    return found;
  }

  const Names& axis_choices() const { return axes_; }

 private:
  std::string file_;
  const ProblemOfOption& problem_of_;
  Names options_;  // those of `tutti train` that a sweep may set
  Names axes_;
};

/// With what the section `quick` says in place of the same keys above it.
std::map<std::string, YAML::Node> chosen_parts(const Reader& reader, const YAML::Node& root, bool quick) {
  std::map<std::string, YAML::Node> parts;
  for (const auto& [key, value] : reader.entries(root, "a sweep")) {
    reader.check_name(key, "key", kKeys);
    parts.emplace(key.Scalar(), value);
  }
  if (quick) {
    const auto section = parts.find("quick");
    if (section == parts.end()) reader.fail(root, "this sweep has no section 'quick'");
    const YAML::Node small = section->second;
    for (const auto& [key, value] : reader.entries(small, "'quick'")) {
      reader.check_name(key, "key", kKeys);
      if (key.Scalar() == "quick") reader.fail(key, "'quick' inside 'quick'");
      parts.insert_or_assign(key.Scalar(), value);
    }
  }
  parts.erase("quick");
  return parts;
}

/// The axes with the values of both forms: special cases stand once in a file, and name values of either.
std::vector<Axis> axes_of_both_forms(const Reader& reader, const YAML::Node& root) {
  std::vector<Axis> all;
  for (const YAML::Node& form : {root, root["quick"]}) {
    if (!form.IsDefined() || !form.IsMap() || !form["axes"].IsDefined()) continue;
    for (const Axis& axis : reader.axes(form["axes"])) {
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const Axis& other) { return other.name == axis.name; });
      if (known == all.end())
        all.push_back(axis);
      else
        known->values.insert(known->values.end(), axis.values.begin(), axis.values.end());
    }
  }
  return all;
}

void check(const Reader& reader, const YAML::Node& root, const Sweep& sweep) {
  if (sweep.axes.empty()) reader.fail(root, "a sweep needs 'axes': what it varies");
  for (const Axis& axis : sweep.axes) {
    if (axis.name != "network") continue;
    for (const std::string& value : axis.values)
      if (sweep.networks.count(value) == 0)
        reader.fail(root, fmt::format("'networks' does not say what the network '{}' is", value));
  }
}

Sweep read_sweep(const Reader& reader, const YAML::Node& root, const std::string& text, bool quick) {
  // First: putting one part in another's place changes the nodes of `root`, too.
  const std::vector<Axis> known_axes = axes_of_both_forms(reader, root);
  const std::map<std::string, YAML::Node> parts = chosen_parts(reader, root, quick);
  const auto part = [&](const char* name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::optional<YAML::Node>() : std::optional<YAML::Node>(found->second);
  };

  Sweep sweep;
  sweep.text = text;
  sweep.is_quick = quick;
  if (const auto node = part("title")) sweep.title = reader.scalar(*node, "title");
  if (const auto node = part("axes")) sweep.axes = reader.axes(*node);
  if (const auto node = part("options")) sweep.options = reader.train_options(*node, "'options'");
  if (const auto node = part("networks"))
    for (const auto& [name, value] : reader.entries(*node, "'networks'"))
      sweep.networks[name.Scalar()] = reader.network(value, name.Scalar());
  if (const auto node = part("where")) {
    if (!node->IsSequence()) reader.fail(*node, "'where' needs a list: `- {when: {…}, set: {…}}`");
    for (const YAML::Node& entry : *node) {
      SpecialCase special;
      for (const auto& [key, value] : reader.entries(entry, "'where'")) {
        reader.check_name(key, "key of 'where'", {"when", "set"});
        if (key.Scalar() == "when") special.when = reader.pattern(value, "'when'", known_axes);
        if (key.Scalar() == "set") special.set = reader.train_options(value, "'set'");
      }
      if (special.when.empty() || special.set.empty()) reader.fail(entry, "'where' needs both 'when' and 'set'");
      sweep.special_cases.push_back(std::move(special));
    }
  }
  if (const auto node = part("leave-out")) {
    if (!node->IsSequence()) reader.fail(*node, "'leave-out' needs a list: `- {strategy: bsp, network: 10gbe}`");
    for (const YAML::Node& entry : *node) {
      sweep.leave_out.push_back(reader.pattern(entry, "'leave-out'", known_axes));
      if (sweep.leave_out.back().empty()) reader.fail(entry, "'leave-out' with nothing in it would leave out all");
    }
  }
  if (const auto node = part("baseline"))
    sweep.baseline = reader.settings(*node, "'baseline'", "axis", reader.axis_choices());
  if (const auto node = part("compare")) {
    sweep.compare = reader.scalar(*node, "compare");
    if (std::none_of(sweep.axes.begin(), sweep.axes.end(),
                     [&](const Axis& axis) { return axis.name == sweep.compare; }))
      reader.fail(*node, fmt::format("'compare': this sweep has no axis '{}'", sweep.compare));
  }
  if (const auto node = part("repeats")) sweep.repeats = static_cast<int>(reader.number(*node, "repeats", 1));
  if (const auto node = part("warmup-steps"))
    sweep.warmup_steps = static_cast<int>(reader.number(*node, "warmup-steps", 0));
  if (const auto node = part("timeout-minutes")) sweep.timeout_minutes = reader.number(*node, "timeout-minutes", 0);
  if (const auto node = part("trace")) sweep.trace = reader.yes_or_no(*node, "trace");
  if (const auto node = part("keep-weights")) sweep.keep_weights = reader.yes_or_no(*node, "keep-weights");
  check(reader, root, sweep);
  return sweep;
}

}  // namespace

Sweep parse_sweep(const std::string& text, const std::string& file, bool quick, const Names& train_options,
                  const ProblemOfOption& problem_of) {
  try {
    return read_sweep(Reader(file, train_options, problem_of), YAML::Load(text), text, quick);
  } catch (const YAML::Exception& error) {
    throw UsageError("{}:{}: not YAML: {}", file, error.mark.line + 1, error.msg);
  }
}

}  // namespace tutti::sweep
