#include "base/exit_note.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace tutti {
namespace {

constexpr std::string_view kMark = "\x1etutti: ended with ";  // what nobody writes by accident

}  // namespace

void write_exit_note(int code) noexcept {
  if (code == 0 || std::getenv(kExitNotesVariable) == nullptr) return;
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%.*s%d\n", static_cast<int>(kMark.size()), kMark.data(), code);
  // In one piece, or another rank's line could come between.
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
}

std::optional<ExitNote> find_exit_note(std::string_view line) {
  const auto at = line.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  ExitNote note{0, line.substr(0, at)};
  const std::string_view number = line.substr(at + kMark.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), note.code);
  if (error != std::errc() || end == number.data()) return std::nullopt;
  return note;
}

}  // namespace tutti
