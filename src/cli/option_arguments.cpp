#include "cli/option_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>
#include <type_traits>

#include "base/utf8.h"

namespace tutti {
namespace {

/// CLI11 itself throws what is no error of its own at a switch that is neither.
std::string problem_of_switch(const std::string& text) {
  try {
    CLI::detail::to_flag_value(text);
    // It takes the number that a text begins with.
    const bool is_number = text.find_first_not_of("0123456789", 1) == std::string::npos;
    if (is_number || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return "";
  } catch (const std::exception&) {
  }
  return fmt::format("'{}' is neither true nor false", printable(valid_utf8(text)));
}

/// CLI11 would say "Could not convert".
template <typename Number>
std::string problem_of_number(const std::string& text) {
  Number number{};
  const bool is_negative = std::is_unsigned_v<Number> && !text.empty() && text[0] == '-';  // would be a large one
  if (!is_negative && CLI::detail::lexical_cast(text, number)) return "";
  return fmt::format("'{}' is no {}", printable(valid_utf8(text)),
                     std::is_floating_point_v<Number> ? "number"
                     : std::is_unsigned_v<Number>     ? "whole number of 0 or more"
                                                      : "whole number");
}

/// Throws what CLI11 does where the number has no place in the option.
template <typename Value>
Value scaled_value(const std::string& name, double given, double unit) {
  constexpr double kMost = 9e18;  // of an int64_t
  if (!(std::abs(given * unit) < kMost)) throw CLI::ValidationError(name, fmt::format("{} is too large", given));
  return static_cast<Value>(given * unit);
}

CLI::Option* add_option(CLI::App& command, const TrainOption& option) {
  const std::string name = "--" + option.name + (option.older_name.empty() ? "" : ",--" + option.older_name);
  return std::visit(
      [&](const auto& field) -> CLI::Option* {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>) {
          return command
              .add_option_function<double>(
                  name,
                  [field, name](const double& given) {
                    std::visit(
                        [&](auto* value) {
                          *value = scaled_value<std::decay_t<decltype(*value)>>(name, given, field.unit);
                        },
                        field.value);
                  },
                  option.help)
              ->check(problem_of_number<double>);
        } else if constexpr (std::is_same_v<Field, Negated>) {
          return command
              .add_flag_function(
                  name, [field](int64_t wanted) { *field.value = wanted <= 0; }, option.help)
              ->check(problem_of_switch);
        } else if constexpr (std::is_same_v<Field, std::optional<bool>*>) {
          return command
              .add_flag_function(
                  name + ",!--no-" + option.name, [field](int64_t wanted) { *field = wanted > 0; }, option.help)
              ->check(problem_of_switch);
        } else if constexpr (std::is_same_v<Field, bool*>) {
          return command.add_flag(name, *field, option.help)->check(problem_of_switch);
        } else if constexpr (std::is_arithmetic_v<std::remove_pointer_t<Field>>) {
          return command.add_option(name, *field, option.help)->check(problem_of_number<std::remove_pointer_t<Field>>);
        } else {
          return command.add_option(name, *field, option.help);
        }
      },
      option.field);
}

}  // namespace

void add_options(CLI::App& command, const std::vector<TrainOption>& options) {
  for (const TrainOption& option : options) {
    if (option.name.empty()) continue;
    CLI::Option* const added = add_option(command, option)->group(option.group);
    if (const std::string usual = default_text(option); !usual.empty()) added->default_str(usual);
  }
}

std::string problem_of_value(const std::string& name, const std::string& value, const KnownNames& names) {
  TrainOptions values;
  std::vector<TrainOption> table = train_option_table(values, names);
  table.erase(std::remove_if(table.begin(), table.end(),
                             [&](const TrainOption& one) { return one.name != name && "no-" + one.name != name; }),
              table.end());
  CLI::App command;
  add_options(command, table);
  try {
    command.parse(std::vector<std::string>{fmt::format("--{}={}", name, value)});
    check_values(values, names);
    return "";
  } catch (const std::exception& error) {  // of CLI11, or UsageError
    return error.what();
  }
}

}  // namespace tutti
