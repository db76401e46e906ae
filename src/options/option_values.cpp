// What is made of the table: checks, JSON, lists of names, and the reference page.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/names.h"
#include "base/utf8.h"
#include "options/option_table.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Of a number, as people give it.
std::optional<double> number_of(const TrainOption& option) {
  return std::visit(
      [](const auto& field) -> std::optional<double> {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>)
          return std::visit([&](const auto* value) { return static_cast<double>(*value) / field.unit; }, field.value);
        else if constexpr (std::is_pointer_v<Field> && std::is_arithmetic_v<std::remove_pointer_t<Field>>)
          return static_cast<double>(*field);
        else
          return std::nullopt;
      },
      option.field);
}

json value_of(const TrainOption& option) {
  return std::visit(
      [](const auto& field) -> json {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>)
          return std::visit([](const auto* value) { return json(*value); }, field.value);
        else if constexpr (std::is_same_v<Field, Negated>)
          return *field.value;
        else if constexpr (std::is_same_v<Field, std::optional<bool>*>)
          return *field ? json(**field) : json();
        else
          return *field;
      },
      option.field);
}

void set_value(const TrainOption& option, const json& value) {
  std::visit(
      [&](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>)
          std::visit([&](auto* number) { value.get_to(*number); }, field.value);
        else if constexpr (std::is_same_v<Field, Negated>)
          value.get_to(*field.value);
        else if constexpr (std::is_same_v<Field, std::optional<bool>*>)
          *field = value.is_null() ? std::nullopt : std::optional<bool>(value.get<bool>());
        else
          value.get_to(*field);
      },
      option.field);
}

/// As --NAME=TEXT and a recipe have it.
std::string text_of(const TrainOption& option) {
  if (const auto* const text = std::get_if<std::string*>(&option.field)) return **text;
  if (const auto* const switched = std::get_if<Negated>(&option.field)) return *switched->value ? "false" : "true";
  if (const auto* const is_on = std::get_if<bool*>(&option.field)) return **is_on ? "true" : "false";
  if (const auto* const whole = std::get_if<int64_t*>(&option.field)) return fmt::format("{}", **whole);
  if (const auto* const whole = std::get_if<uint64_t*>(&option.field)) return fmt::format("{}", **whole);
  if (const std::optional<double> number = number_of(option)) return fmt::format("{}", *number);
  const json value = value_of(option);
  return value.is_null() ? "" : value.dump();
}

/// 0 where nobody knows the optimizer.
double usual_learning_rate(const std::string& optimizer) {
  return contains(optimizer_names(), optimizer) ? find_optimizer(optimizer).learning_rate : 0;
}

/// What stands behind the option on a command line.
const char* placeholder(const TrainOption& option) {
  if (std::holds_alternative<std::string*>(option.field)) return " TEXT";
  if (std::holds_alternative<bool*>(option.field) || std::holds_alternative<Negated>(option.field) ||
      std::holds_alternative<std::optional<bool>*>(option.field))
    return "";
  return std::holds_alternative<double*>(option.field) || std::holds_alternative<Scaled>(option.field) ? " NUMBER"
                                                                                                       : " COUNT";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

std::string default_text(const TrainOption& option) {
  if (const auto* const text = std::get_if<std::string*>(&option.field)) return **text;
  if (std::holds_alternative<bool*>(option.field)) return "";
  const std::optional<double> number = number_of(option);
  return number && *number > 0 ? fmt::format("{:g}", *number) : "";
}

void check_values(const TrainOptions& options, const KnownNames& names) {
  TrainOptions values = options, usual;
  const std::vector<TrainOption> given = train_option_table(values, names), defaults = train_option_table(usual, names);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TrainOption& option = given[i];
    if (value_of(option) == value_of(defaults[i])) continue;
    const std::optional<double> number = number_of(option);
    if (option.range && number && !option.range->has(*number))
      throw UsageError("--{} is {}: it must be {}", option.name, *number, option.range->describe());
    const auto* const text = std::get_if<std::string*>(&option.field);
    if (text != nullptr && !is_utf8(**text))
      throw UsageError("--{} '{}': its bytes are no UTF-8 text, which records need", option.name, valid_utf8(**text));
    if (text != nullptr && !option.names.empty() &&
        std::find(option.names.begin(), option.names.end(), **text) == option.names.end())
      throw UsageError(unknown_name(option.kind, **text, option.names));
  }
}

json describe_options(const TrainOptions& options) {
  TrainOptions values = options;
  values.learning_rate = base_learning_rate(options);
  json described = json::object();
  for (const TrainOption& option : train_option_table(values))
    if (!option.key.empty()) described[option.key] = value_of(option);
  return described;
}

TrainOptions read_options(const json& described) {
  TrainOptions values;
  for (const TrainOption& option : train_option_table(values)) {
    if (option.key.empty() || !described.contains(option.key)) continue;
    try {
      set_value(option, described.at(option.key));
    } catch (const json::exception&) {
      throw Error("the option '{}' of a run is {}, which cannot be", option.key, described.at(option.key).dump());
    }
  }
  return values;
}

std::vector<OptionText> option_texts(const json& described) {
  TrainOptions values = read_options(described), usual;
  // Records have the rate that was meant by none.
  usual.learning_rate = usual_learning_rate(values.optimizer.name);
  const std::vector<TrainOption> given = train_option_table(values), defaults = train_option_table(usual);
  std::vector<OptionText> texts;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TrainOption& option = given[i];
    if (option.key.empty() || !described.contains(option.key)) continue;
    texts.push_back({option.name.empty() ? option.key : option.name, text_of(option),
                     value_of(option) == value_of(defaults[i]), option.in_recipes && !option.name.empty()});
  }
  return texts;
}

void take_over(TrainOptions& options, const TrainOptions& had,
               const std::function<bool(const std::string&)>& is_given) {
  TrainOptions from = had;
  const std::vector<TrainOption> now = train_option_table(options), before = train_option_table(from);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (!now[i].key.empty() && !is_given(now[i].name)) set_value(now[i], value_of(before[i]));
  if (is_given("epochs") && !is_given("steps")) options.steps = 0;  // --steps goes before --epochs where it is set
}

std::vector<std::string> recipe_keys() {
  TrainOptions usual;
  std::vector<std::string> keys;
  for (const TrainOption& option : train_option_table(usual)) {
    if (!option.in_recipes || option.name.empty()) continue;
    keys.push_back(option.name);
    if (!option.older_name.empty()) keys.push_back(option.older_name);
    if (std::holds_alternative<std::optional<bool>*>(option.field)) keys.push_back("no-" + option.name);
  }
  return keys;
}

std::vector<std::string> keys_outside_recipes() {
  TrainOptions usual;
  std::vector<std::string> keys;
  for (const TrainOption& option : train_option_table(usual))
    if (!option.in_recipes && !option.name.empty()) keys.push_back(option.name);
  return keys;
}

bool is_set_by_sweeps(const std::string& name) {
  TrainOptions usual;
  const std::vector<TrainOption> table = train_option_table(usual);
  return std::any_of(table.begin(), table.end(),
                     [&](const TrainOption& option) { return option.name == name && !option.in_sweeps; });
}

const json& usual_options() {
  static const json all = [] {
    TrainOptions usual;
    json described = json::object();
    for (const TrainOption& option : train_option_table(usual))
      if (option.changes_speed) described[option.key] = value_of(option);
    return described;
  }();
  return all;
}

std::string options_page(const KnownNames& names) {
  std::string page =
      "# Options of `tutti train`\n\n"
      "`tutti train --help-markdown` writes this page from the table of options (`src/options/option_table.cpp`): "
      "change it there.\n\n"
      "A recipe sets an option by its name without the dashes: `batch: 64`. A switch is `true` or `false` there. "
      "*Key* is the option's name in records and checkpoints, where sizes are in bytes and times in seconds.\n";
  TrainOptions usual;
  std::string group;
  for (const TrainOption& option : train_option_table(usual, names)) {
    if (option.name.empty()) continue;
    if (option.group != group) {
      group = option.group;
      page += fmt::format("\n## {}\n\n| option | default | what | key |\n|---|---|---|---|\n", group);
    }
    const bool has_two = std::holds_alternative<std::optional<bool>*>(option.field);
    std::string what = replaced(replaced(option.help, "|", "\\|"), "\n  ", "<br>");
    const std::string range = option.range ? option.range->describe() : "";
    if (!range.empty()) what += fmt::format(". It must be {}.", range);
    const std::string usual_text = default_text(option);
    page += fmt::format("| `--{}{}`{} | {} | {} | {} |\n", option.name, placeholder(option),
                        has_two                      ? fmt::format(", `--no-{}`", option.name)
                        : !option.older_name.empty() ? fmt::format(", `--{}`", option.older_name)
                                                     : "",
                        usual_text.empty() ? "" : "`" + usual_text + "`", what,
                        option.key.empty() ? "" : "`" + option.key + "`");
  }
  return page;
}

}  // namespace tutti
