#include "cli/completion_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "cli/completion.h"
#include "cli/recipe.h"
#include "netbox/network.h"
#include "options/option_table.h"
#include "sim/cluster.h"
#include "sweep/sweep_files.h"
#include "train/options.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Found = CompletionValues::Found;

/// What options and words can be, by their names: one name means one thing in all commands.
class KnownValues {
 public:
  KnownValues() {
    TrainOptions usual;
    const KnownNames names = known_names();
    for (const TrainOption& option : train_option_table(usual, names))
      if (!option.names.empty()) by_name_["--" + option.name] = {option.names};
    const CompletionValues runs{{}, Found::runs};
    for (const char* const name : {"RUN", "run", "train --resume", "report --compare"}) by_name_[name] = runs;
    by_name_["--recipe"] = {with_list(recipe_names()), Found::recipes};
    by_name_["--cluster"] = {with_list(shipped_clusters()), Found::clusters};
    by_name_["SWEEP"] = {sweep::sweep_names(), Found::sweeps};
    by_name_["--network"] = {netbox::network_names()};
    by_name_["--map-by"] = {{"slot", "node"}};
    by_name_["models names"] = by_name_["--model"];
    by_name_["data action"] = {{"list", "verify", "get"}};
    by_name_["data name"] = {names.data_sets};
    by_name_["SHELL"] = {{"bash", "zsh"}};
  }

  /// `name` is that of an option, or of a word that is none.
  CompletionValues of(const std::string& path, const std::string& name) const {
    auto found = by_name_.find(fmt::format("{} {}", path, name));
    if (found == by_name_.end()) found = by_name_.find(name);
    return found == by_name_.end() ? CompletionValues() : found->second;
  }

 private:
  static std::vector<std::string> with_list(std::vector<std::string> names) {
    names.emplace_back("list");
    return names;
  }

  std::map<std::string, CompletionValues> by_name_;
};

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Adds the command and then its own commands.
void describe(const CLI::App& app, const std::string& path, const KnownValues& known,
              std::vector<CompletionCommand>& all) {
  CompletionCommand command{path, first_line_of(app.get_description()), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    CompletionOption one{{}, first_line_of(option->get_description()), option->get_items_expected_max() > 0, {}};
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    if (option->get_positional()) {
      const CompletionValues values = known.of(path, option->get_name(true));
      command.words.words.insert(command.words.words.end(), values.words.begin(), values.words.end());
      if (values.found != Found::nothing) command.words.found = values.found;
    }
    if (one.names.empty()) continue;
    if (one.takes_value) one.values = known.of(path, one.names.front());
    command.options.push_back(std::move(one));
  }
  all.push_back(std::move(command));
  for (const CLI::App* own : app.get_subcommands([](const CLI::App*) { return true; }))
    describe(*own, path.empty() ? own->get_name() : path + " " + own->get_name(), known, all);
}

}  // namespace

std::function<int()> add_completion_command(CLI::App& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "print a script which lets a shell complete commands");
  command->add_option("SHELL", *shell, "bash or zsh")->required();
  command->footer(
      "For this shell, and for all to come:\n"
      "  source <(tutti completion bash)\n"
      "  tutti completion bash > ~/.local/share/bash-completion/completions/tutti\n"
      "  tutti completion zsh > ~/.zfunc/_tutti      # a folder of $fpath\n"
      "`./tutti install` does it for all users of a prefix.");
  return [shell, &program] {
    const std::vector<std::string> shells = {"bash", "zsh"};
    if (!contains(shells, *shell)) throw UsageError(unknown_name("shell", *shell, shells));
    std::vector<CompletionCommand> commands;
    describe(program, "", KnownValues(), commands);
    fmt::print("{}", *shell == "bash" ? bash_completion(commands) : zsh_completion(commands));
    return 0;
  };
}

}  // namespace tutti
