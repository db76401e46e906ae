#include "cli/option_arguments.h"

#include <type_traits>

namespace tutti {
namespace {

CLI::Option* add_option(CLI::App& command, const TrainOption& option) {
  const std::string name = "--" + option.name;
  return std::visit(
      [&](const auto& field) -> CLI::Option* {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>) {
          return command.add_option_function<double>(
              name,
              [field](const double& given) {
                std::visit(
                    [&](auto* value) { *value = static_cast<std::decay_t<decltype(*value)>>(given * field.unit); },
                    field.value);
              },
              option.help);
        } else if constexpr (std::is_same_v<Field, Negated>) {
          return command.add_flag_function(
              name, [field](int64_t wanted) { *field.value = wanted <= 0; }, option.help);
        } else if constexpr (std::is_same_v<Field, std::optional<bool>*>) {
          return command.add_flag_function(
              name + ",!--no-" + option.name, [field](int64_t wanted) { *field = wanted > 0; }, option.help);
        } else if constexpr (std::is_same_v<Field, bool*>) {
          return command.add_flag(name, *field, option.help);
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

}  // namespace tutti
