#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "options/option_table.h"
#include "record/sweep_plan.h"

namespace tutti::sweep {

/// One thing that a sweep varies.
struct Axis {
  std::string name;  // one of axis_names(), or any other option of `tutti train`
  std::vector<std::string> values;
};

/// Cells whose settings have one of these values on every axis named.
using Pattern = std::map<std::string, std::set<std::string>>;
bool matches(const Pattern& pattern, const Settings& settings);

/// Options for the cells that match.
struct SpecialCase {
  Pattern when;
  Settings set;
};

/// A study: what is varied, what stays, how often it is measured. The same words are those of a sweep file.
struct Sweep {
  std::string name;   // of the file, without .yaml
  std::string title;  // what a report puts above it
  std::string text;   // the file
  bool is_quick = false;

  std::vector<Axis> axes;
  std::string compare;                              // the axis that varies fastest
  Settings options;                                 // for every cell
  std::vector<SpecialCase> special_cases;           // later ones win
  std::map<std::string, EmulatedNetwork> networks;  // what values of the axis `network` mean
  std::vector<Pattern> leave_out;
  Settings baseline;  // a cell with these settings in place of its own is what it is compared with; empty: none
  int repeats = 1;
  int warmup_steps = 10;       // declared, not counted by reports
  double timeout_minutes = 0;  // of a cell; 0: none
  bool trace = false;          // keep a timeline of a few steps of each first repeat
  bool keep_weights = false;
};

/// The axes that a record's configuration is made of.
const std::vector<std::string>& axis_names();

/// Reads a sweep file. With `quick`, what its section `quick` says takes the place of the same keys above it.
/// `train_options` are those of `tutti train` ("--batch"), `problem_of` looks at their values. UsageErrors name `file`
/// and line.
Sweep parse_sweep(const std::string& text, const std::string& file, bool quick,
                  const std::vector<std::string>& train_options, const ProblemOfOption& problem_of = {});

/// "12" or "0.5": a number from `least` to a thousand million. The UsageError says `what` it is about.
double number_setting(const std::string& what, const std::string& text, double least);

}  // namespace tutti::sweep
