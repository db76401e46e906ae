#pragma once

#include <string>
#include <vector>

namespace tutti {

/// What a shell offers for a value: these words, or names that it finds by itself when it is asked; else files.
struct CompletionValues {
  enum class Found { nothing, runs, recipes, sweeps, clusters };
  std::vector<std::string> words = {};
  Found found = Found::nothing;

  bool is_empty() const { return words.empty() && found == Found::nothing; }
};

struct CompletionOption {
  std::vector<std::string> names;  // with their dashes
  std::string help;                // a line
  bool takes_value = false;
  CompletionValues values = {};
};

/// A command of the program, or of another command.
struct CompletionCommand {
  std::string path;  // "runs show"; "" for the program itself
  std::string help;
  std::vector<CompletionOption> options;
  CompletionValues words;  // that are no options, besides commands of its own
};

/// A script for bash or zsh which completes the words of `tutti` and `./tutti` without starting either. Commands are
/// named before their own commands.
std::string bash_completion(const std::vector<CompletionCommand>& commands);
std::string zsh_completion(const std::vector<CompletionCommand>& commands);

}  // namespace tutti
