#include "base/exit_note.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace tutti {
namespace {

constexpr std::string_view kMark = "\x1etutti: ended with ";  // what nobody writes by accident
constexpr std::string_view kBecause = " because of rank ";

std::atomic<int> first_culprit{-1};

/// The number that `text` begins with, taken off it.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

void note_culprit(int rank) noexcept {
  int none = -1;
  first_culprit.compare_exchange_strong(none, rank);
}

std::optional<int> noted_culprit() noexcept {
  const int rank = first_culprit.load();
  return rank < 0 ? std::nullopt : std::optional<int>(rank);
}

void write_exit_note(int code) noexcept {
  const char* const descriptor = std::getenv(kExitNotesVariable);
  if (descriptor == nullptr) return;
  char line[96];
  int length = std::snprintf(line, sizeof line, "%.*s%d", static_cast<int>(kMark.size()), kMark.data(), code);
  if (const auto rank = noted_culprit())
    length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length), "%.*s%d",
                            static_cast<int>(kBecause.size()), kBecause.data(), *rank);
  line[length++] = '\n';
  // In one piece, or another rank's line could come between.
  [[maybe_unused]] const ssize_t put = ::write(std::atoi(descriptor), line, static_cast<std::size_t>(length));
}

std::optional<ExitNote> find_exit_note(std::string_view line) {
  const auto at = line.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kMark.size());
  const auto code = take_number(rest);
  if (!code) return std::nullopt;
  ExitNote note{*code, std::nullopt, line.substr(0, at)};
  if (rest.substr(0, kBecause.size()) == kBecause) {
    rest.remove_prefix(kBecause.size());
    note.culprit = take_number(rest);
  }
  return note;
}

}  // namespace tutti
