#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

struct ToolResult {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

/// Where a program is: in PATH, or where system programs are when PATH leaves those out; a path stands for itself. ""
/// when it is not there.
std::string find_program(const std::string& name);

/// Whether a program is in PATH itself, where execvp() looks for it.
bool is_in_path(const std::string& name);

/// What a process exits with whose program cannot be executed.
inline constexpr int kCannotExecute = 127;

/// How a child begins.
struct ChildStart {
  std::vector<std::string> words;                       // the program, looked up in PATH, and its arguments
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; none: ours
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;    // what it has for these; -1: what we have
  int kept_fd = -1;                                     // another descriptor that it inherits
  bool leads_group = false;                             // a process group of its own
  int death_signal = SIGKILL;                           // what it gets when the thread that started it ends
  int failure_fd = -1;  // gets errno if the program cannot be executed; -1: a text goes to its stderr
  /// What the child does instead of executing `words`, as a copy of this process: what has been loaded stays loaded.
  /// What it returns is the exit code. Descriptors that exec would close are closed. Only while this process has no
  /// other thread that holds a lock.
  std::function<int()> run = {};
};

/// Starts a child. Its signals are as by default, but for a SIGHUP that nohup has ignored. Throws Error when there can
/// be no further process.
pid_t start_child(const ChildStart& start);

/// Waits for the end of a child. Returns its status as waitpid() gives it.
int wait_for_child(pid_t child);

/// The exit code that a status stands for; 128 + signal for a process that was killed.
int exit_code_of(int status);

/// Runs a program to its end, without a shell and without stdin. Throws Error when it cannot be started. It inherits
/// the descriptors that are not closed by exec; see StateLock.
ToolResult run_tool(const std::vector<std::string>& words);

/// As run_tool, and throws Error with what the program said unless it succeeded. Returns its output.
std::string must_run(const std::vector<std::string>& words);

/// Replaces this process by another program. Returns only by throwing Error.
[[noreturn]] void become(const std::vector<std::string>& words);

/// Strings as exec wants them; valid as long as `words`.
std::vector<char*> exec_arguments(const std::vector<std::string>& words);

/// The words of the command line of this process, the program's name first.
std::vector<std::string> own_words();

}  // namespace tutti
