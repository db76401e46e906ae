#pragma once

#include <sys/types.h>

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
