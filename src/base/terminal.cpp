#include "base/terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace tutti {

bool stdout_is_terminal() {
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return std::getenv(kTerminalVariable) != nullptr;
  return ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace tutti
