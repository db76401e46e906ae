#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace tutti {

bool stdout_is_terminal() {
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return std::getenv(kTerminalVariable) != nullptr;
  return ::isatty(STDOUT_FILENO) == 1;
}

std::size_t terminal_width() {
  if (!stdout_is_terminal()) return 0;
  if (const char* const columns = std::getenv("COLUMNS")) {
    const std::string_view text = columns;
    std::size_t width = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error == std::errc() && end == text.data() + text.size() && width > 0) return width;
  }
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace tutti
