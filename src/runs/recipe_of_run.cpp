#include "runs/recipe_of_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "options/option_table.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Text that YAML reads as it stands, and as text or a number alike.
bool is_plain(const std::string& text) {
  const auto is_safe = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
  };
  const bool begins_well = !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), is_safe);
  for (const char* const nothing : {"null", "Null", "NULL"})
    if (text == nothing) return false;
  return begins_well;
}

/// As a value of YAML, in which a text of JSON means the same.
std::string yaml_value(const std::string& text) {
  if (is_plain(text)) return text;
  return json(valid_utf8(text)).dump();
}

std::string one_line(std::string text) {
  text = printable(valid_utf8(std::move(text)));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string recipe_of(const RunFacts& run) {
  if (run.parts == 0) throw Error("{}: its records do not say with which options it began", run.folder.string());
  const RunConfig& config = run.config();
  if (config.model.empty() || config.data.empty())
    throw Error("{}: `tutti train` cannot repeat it: a program of its own trained there", run.folder.string());
  std::string about = fmt::format("repeats the run {}", run.name);
  if (const std::string began = readable_date(run.began_s); !began.empty()) about += " of " + began;
  if (run.run.environment) about += fmt::format(", commit {}", run.run.environment->commit);
  std::string text = fmt::format("about: {}\n", json(one_line(about)).dump());
  const auto remark = [&](const std::string& what) { text += "# " + one_line(what) + "\n"; };
  if (run.run.nodes.size() > 1)
    remark(fmt::format("It ran on {} nodes: add --hosts, or start it there.", run.run.nodes.size()));
  if (run.run.resumed_at_step > 0)
    remark(fmt::format("It was resumed at step {}; these are the options of its last part.", run.run.resumed_at_step));
  for (const OptionText& option : option_texts(run.run.config)) {
    const bool says_what = option.name == "model" || option.name == "data";
    if (option.is_usual && !says_what) continue;
    if (option.in_recipes)
      text += fmt::format("{}: {}\n", option.name, yaml_value(option.text));
    else if (option.name == "recipe")
      remark("It was begun with --recipe " + option.text + ".");
    else
      remark(fmt::format("{} was {}, which no recipe can say.", option.name, option.text));
  }
  return text;
}

}  // namespace tutti
