#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "launch/slurm_file.h"

namespace tutti {
namespace {

using Found = CompletionValues::Found;

// What the script ./tutti knows besides the program's commands.
constexpr const char* kScriptCommands = "test lint coverage doxygen python build clean install package help";

/// The part that both shells have alike: helpers that print names, one a line.
constexpr const char* kFinders = R"sh(
# The runs in the folder that --runs names, or else in runs/.
_tutti_runs() {
  local folder=runs file i
  for ((i = 1; i < ${#_tutti_words[@]}; ++i)); do
    [[ ${_tutti_words[i]} == --runs ]] && folder=${_tutti_words[i+1]}
    [[ ${_tutti_words[i]} == --runs=* ]] && folder=${_tutti_words[i]#--runs=}
  done
  find "$folder" -mindepth 2 -maxdepth 2 -name records.jsonl ! -path "$folder/.*" 2>/dev/null | while IFS= read -r file; do
    file=${file%/records.jsonl}
    printf '%s\n' "${file##*/}"
  done
}
# The YAML files of a folder here, and those that come with the program.
_tutti_files() {
  local file
  find "$1" -maxdepth 1 -name '*.yaml' 2>/dev/null | while IFS= read -r file; do
    file=${file##*/}
    printf '%s\n' "${file%.yaml}"
  done
  printf '%s\n' "${@:2}"
}
)sh";

std::vector<std::string> names_before(const std::string& path) {
  const std::size_t space = path.rfind(' ');
  return {space == std::string::npos ? "" : path.substr(0, space),
          path.substr(space == std::string::npos ? 0 : space + 1)};
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + shell_quote(word);
  return text;
}

/// What offers these values: a command of the script.
std::string offer(const CompletionValues& values) {
  std::string text;
  switch (values.found) {
    case Found::nothing:
      break;
    case Found::runs:
      text = "_tutti_offer_lines \"$(_tutti_runs)\"";
      break;
    case Found::recipes:
      text = "_tutti_offer_lines \"$(_tutti_files recipes" + quoted_words(values.words) + ")\"";
      break;
    case Found::sweeps:
      text = "_tutti_offer_lines \"$(_tutti_files sweeps" + quoted_words(values.words) + ")\"";
      break;
    case Found::clusters:
      text = "_tutti_offer_lines \"$(_tutti_files clusters" + quoted_words(values.words) + ")\"";
      break;
  }
  return text.empty() ? "_tutti_offer" + quoted_words(values.words) : text;
}

/// The body of a case: which command is it after a word? One pattern for each command.
std::string command_patterns(const std::vector<CompletionCommand>& commands) {
  std::string patterns;
  for (const CompletionCommand& command : commands) {
    if (command.path.empty()) continue;
    const auto names = names_before(command.path);
    patterns += (patterns.empty() ? "" : " | ") + shell_quote(names[0] + " " + names[1]);
  }
  return patterns;
}

/// Cases for an option that waits for its value; those with the same values share one. `files` is what a shell does for
/// the others.
std::string value_cases(const std::vector<CompletionCommand>& commands, const std::string& files) {
  std::map<std::string, std::string> patterns;  // by what is done
  for (const CompletionCommand& command : commands)
    for (const CompletionOption& option : command.options) {
      if (!option.takes_value) continue;
      std::string& all = patterns[option.values.is_empty() ? files : offer(option.values)];
      for (const std::string& name : option.names)
        all += (all.empty() ? "" : " | ") + shell_quote(command.path + " " + name);
    }
  std::string cases;
  for (const auto& [what, all] : patterns)
    cases += fmt::format("    {})\n      {}\n      return\n      ;;\n", all, what);
  return cases;
}

std::vector<const CompletionCommand*> commands_of(const std::vector<CompletionCommand>& commands,
                                                  const std::string& path) {
  std::vector<const CompletionCommand*> own;
  for (const CompletionCommand& command : commands)
    if (!command.path.empty() && names_before(command.path)[0] == path) own.push_back(&command);
  return own;
}

/// For each command, what `line` makes of it.
template <typename Line>
std::string command_cases(const std::vector<CompletionCommand>& commands, Line line) {
  std::string cases;
  for (const CompletionCommand& command : commands) {
    const std::string what = line(command);
    if (!what.empty()) cases += fmt::format("    {})\n{}      ;;\n", shell_quote(command.path), what);
  }
  return cases;
}

/// For zsh's _describe: "name:help".
std::string described(const std::string& name, const std::string& help) {
  std::string text;
  for (const char c : name) text += c == ':' ? std::string("\\:") : std::string(1, c);
  return shell_quote(text + ":" + help);
}

}  // namespace

std::string bash_completion(const std::vector<CompletionCommand>& commands) {
  std::string text = "# Completion of tutti for bash, made by `tutti completion bash`.\n";
  text += kFinders;
  text += R"sh(
# Adds the lines of a text that continue the word.
_tutti_offer_lines() {
  local line
  while IFS= read -r line; do
    if [[ -n $line && $line == "$_tutti_word"* ]]; then COMPREPLY+=("$(printf '%q' "$line")"); fi
  done <<<"$1"
}
_tutti_offer() {
  local word
  for word in "$@"; do _tutti_offer_lines "$word"; done
}

_tutti() {
  local -a _tutti_words=("${COMP_WORDS[@]}")
  local _tutti_word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= start= i
  COMPREPLY=()
  # bash takes --model=NAME for three words.
  if [[ $_tutti_word == = ]]; then
    _tutti_word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
)sh";
  text += "      " + command_patterns(commands) + R"sh()
        command=${command:+$command }${COMP_WORDS[i]}
        ;;
      'slurm --') command= ;;                # a command of tutti follows
      'run --' | 'cluster run --') return ;; # any program
    esac
  done
  case "$command $before" in
)sh";
  text += value_cases(commands, ":");
  text += R"sh(  esac
  if [[ $_tutti_word == -* ]]; then
    case $command in
)sh";
  text += command_cases(commands, [](const CompletionCommand& command) {
    std::vector<std::string> names;
    for (const CompletionOption& option : command.options)
      names.insert(names.end(), option.names.begin(), option.names.end());
    return "      _tutti_offer" + quoted_words(names) + "\n";
  });
  text += R"sh(    esac
    return
  fi
  case $command in
)sh";
  text += command_cases(commands, [&](const CompletionCommand& command) {
    std::string what;
    std::vector<std::string> names;
    for (const CompletionCommand* own : commands_of(commands, command.path))
      names.push_back(names_before(own->path)[1]);
    if (!names.empty()) what += "      _tutti_offer" + quoted_words(names) + "\n";
    if (!command.words.is_empty()) what += "      " + offer(command.words) + "\n";
    if (command.path.empty())
      what += fmt::format(
          "      IFS= read -r -n 2 start 2>/dev/null <\"$(type -P -- \"${{COMP_WORDS[0]}}\")\"\n"
          "      if [[ $start == '#!' ]]; then _tutti_offer {}; fi\n",
          kScriptCommands);
    return what;
  });
  text += R"sh(  esac
}
complete -o default -F _tutti tutti
)sh";
  return text;
}

std::string zsh_completion(const std::vector<CompletionCommand>& commands) {
  std::string text = "#compdef tutti\n# Completion of tutti for zsh, made by `tutti completion zsh`.\n";
  text += kFinders;
  text += R"sh(
_tutti_offer_lines() { compadd -- ${(f)1}; }
_tutti_offer() { compadd -- "$@"; }

_tutti() {
  local -a _tutti_words own
  _tutti_words=("${words[@]}")
  local before=${words[CURRENT-1]} command= start= i
  if [[ ${words[CURRENT]} == --*=* ]]; then
    before=${words[CURRENT]%%=*}
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; ++i)); do
    case "$command ${words[i]}" in
)sh";
  text += "      " + command_patterns(commands) + R"sh()
        command=${command:+$command }${words[i]}
        ;;
      'slurm --') command= ;;
      'run --' | 'cluster run --')
        _normal
        return
        ;;
    esac
  done
  case "$command $before" in
)sh";
  text += value_cases(commands, "_files");
  text += R"sh(  esac
  if [[ ${words[CURRENT]} == -* ]]; then
    case $command in
)sh";
  text += command_cases(commands, [](const CompletionCommand& command) {
    std::string what = "      own=(";
    for (const CompletionOption& option : command.options)
      for (const std::string& name : option.names) what += "\n        " + described(name, option.help);
    return what + "\n      )\n      _describe -o option own\n";
  });
  text += R"sh(    esac
    return
  fi
  case $command in
)sh";
  text += command_cases(commands, [&](const CompletionCommand& command) {
    std::string what;
    for (const CompletionCommand* own : commands_of(commands, command.path))
      what += "        " + described(names_before(own->path)[1], own->help) + "\n";
    if (!what.empty()) what = "      own=(\n" + what + "      )\n      _describe command own\n";
    if (!command.words.is_empty()) what += "      " + offer(command.words) + "\n";
    if (command.path.empty())
      what += fmt::format(
          "      before=${{words[1]:c}}\n"
          "      if [[ -r $before ]]; then IFS= read -r -k 2 -u 0 start <\"$before\"; fi\n"
          "      if [[ $start == '#!' ]]; then _tutti_offer {}; fi\n",
          kScriptCommands);
    return what.empty() ? "      _files\n" : what + (command.path == "runs" ? "      _files -/\n" : "");
  });
  text += R"sh(  esac
}
if [[ ${funcstack[1]} == _tutti ]]; then _tutti "$@"; else compdef _tutti tutti; fi
)sh";
  return text;
}

}  // namespace tutti
