#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "options/train_options.h"
#include "tutti/range.h"

namespace tutti {

/// A number that people give in a unit of its own: a size in MiB that is kept in bytes.
struct Scaled {
  std::variant<int64_t*, double*> value;
  double unit;
};

/// A switch that people turn off: --no-eval.
struct Negated {
  bool* value;
};

/// One option of `tutti train`, bound to the value that it sets.
struct TrainOption {
  using Field =
      std::variant<std::string*, double*, int*, int64_t*, uint64_t*, bool*, std::optional<bool>*, Scaled, Negated>;
  std::string name;  // on the command line and in recipes, without dashes; "": not there
  std::string key;   // in records and checkpoints; "": not there
  std::string group;
  std::string help;
  Field field;
  std::optional<Range> range = {};      // of a number
  std::string kind = "";                // of what a name is: "model"
  std::vector<std::string> names = {};  // that it may be; empty: any
  bool in_recipes = true;
  bool in_sweeps = true;        // false: the sweep itself sets it
  std::string older_name = "";  // which works too
  bool changes_speed = false;   // reports name it where it is not as usual

  // For the table: each changes the option and returns it.
  TrainOption& recorded_as(const std::string& other_key);
  TrainOption& not_recorded();
  TrainOption& must_be(const Range& numbers);
  TrainOption& one_of(const std::string& what, const std::vector<std::string>& known);
  TrainOption& also_called(const std::string& older);
  TrainOption& not_in_recipes();
  TrainOption& set_by_sweeps();
  TrainOption& that_changes_speed();
};

/// Names that libraries know which the table's own cannot link, and what `--transport` means; empty: not checked.
struct KnownNames {
  std::vector<std::string> models = {};
  std::vector<std::string> data_sets = {};
  std::vector<std::string> schedules = {};
  std::vector<std::string> transports = {};
  std::string transport_help = "what messages travel through";
};

/// The table of training options, bound to `values`, which outlive it. The command line, the checks, --help, the keys
/// of records and recipes, and docs/reference/train-options.md are made from it.
std::vector<TrainOption> train_option_table(TrainOptions& values, const KnownNames& names = {});

/// Its part about strategies, for other commands. `offers_auto`: whether the strategy may be auto.
std::vector<TrainOption> strategy_option_table(TrainOptions& values, const std::string& group, bool offers_auto);

/// The value as people give it: "25"; "" where there is none (0, an empty text), which help then explains.
std::string default_text(const TrainOption& option);

/// Throws UsageError at the first value that is out of its range or not among its names. Defaults are always allowed.
void check_values(const TrainOptions& options, const KnownNames& names);

/// For records and checkpoints: everything that is needed to repeat the run.
nlohmann::json describe_options(const TrainOptions& options);
/// What describe_options wrote, also what older versions did: an option that is not there has its default, and keys
/// that are no options are passed over. Throws Error for a value of the wrong type.
TrainOptions read_options(const nlohmann::json& json);

/// A recorded option of a run in the words of a recipe: "batch" and "64".
struct OptionText {
  std::string name;  // as on the command line; its key where it is not there
  std::string text;
  bool is_usual = true;     // has its default
  bool in_recipes = false;  // a recipe can set it
};
/// The options that `described` names, in the order of the table. Throws as read_options() does.
std::vector<OptionText> option_texts(const nlohmann::json& described);

/// What a run that goes on takes from the options that it had: everything recorded that was not given anew. `is_given`
/// is asked with options' names.
void take_over(TrainOptions& options, const TrainOptions& had, const std::function<bool(const std::string&)>& is_given);

/// What is wrong with a value of an option, by the option's name without dashes; "": nothing. For files that set
/// options, which can then be complained about by line.
using ProblemOfOption = std::function<std::string(const std::string& name, const std::string& value)>;

/// Names that a recipe may set.
std::vector<std::string> recipe_keys();
/// Names that only a command line may: a recipe may come from anybody, and decides neither where files are written nor
/// what is continued.
std::vector<std::string> keys_outside_recipes();
/// Whether the option is the sweep's own business. Not for names that are in no table.
bool is_set_by_sweeps(const std::string& name);
/// Options that change how fast a run is, by their keys in records, and what they are unless somebody says so.
const nlohmann::json& usual_options();

/// docs/reference/train-options.md.
std::string options_page(const KnownNames& names);

}  // namespace tutti
