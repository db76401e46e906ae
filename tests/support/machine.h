#pragma once

#include <unistd.h>

#include <initializer_list>
#include <string>

#include "support/command.h"

namespace tutti {

inline bool has_program(const std::string& name) { return run_command("command -v " + name).exit_code == 0; }

/// Why no cluster in a box can be made on this machine, or ""; `programs` besides its own.
inline std::string why_no_box(std::initializer_list<const char*> programs = {}) {
  if (::geteuid() != 0) return "needs root";
  if (!has_program("ip") || !has_program("tc")) return "needs ip and tc (iproute2)";
  for (const char* const program : programs)
    if (!has_program(program)) return std::string("needs ") + program;
  if (run_command("unshare --net --mount --uts true").exit_code != 0)
    return "this system forbids namespaces, also to root";
  return "";
}

}  // namespace tutti
