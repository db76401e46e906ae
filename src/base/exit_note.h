#pragma once

#include <optional>
#include <string_view>

namespace tutti {

// mpirun ends with a code of its own, or not at all while it cannot reach a node. So ranks that Tutti starts through it
// say on stderr, which comes from wherever they run, how they ended, and Tutti takes these lines out again.

/// Set where somebody takes the notes out.
inline constexpr char kExitNotesVariable[] = "TUTTI_EXIT_NOTES";

/// Says that this process is about to end with `code`; nothing where nobody asked, nor for 0.
void write_exit_note(int code) noexcept;

struct ExitNote {
  int code = 0;
  std::string_view before;  // what else was in the line: other ranks write to the same place
};

/// What a line of stderr notes, if anything.
std::optional<ExitNote> find_exit_note(std::string_view line);

}  // namespace tutti
