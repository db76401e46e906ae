#pragma once

#include <optional>
#include <string_view>

namespace tutti {

// A launcher sees how a rank ends by its exit code, and of ranks behind mpirun not even that: it ends with a code of
// its own, or not at all while it cannot reach a node. So ranks that Tutti starts note how they ended, and because of
// which rank. Ranks behind mpirun do it on stderr, which comes from wherever they run, and Tutti takes these lines out
// again; others in a pipe.

/// What a rank exits with when it stopped only because a peer failed (EX_TEMPFAIL). The launcher then looks for the
/// cause elsewhere.
inline constexpr int kExitPeerFailed = 75;

/// The descriptor that notes go to, where somebody reads them.
inline constexpr char kExitNotesVariable[] = "TUTTI_EXIT_NOTES";

/// Whom this process stops for: the first one noted counts. Any thread.
void note_culprit(int rank) noexcept;
std::optional<int> noted_culprit() noexcept;

/// Says that this process is about to end with `code`, and because of whom; nothing where nobody asked.
void write_exit_note(int code) noexcept;

struct ExitNote {
  int code = 0;
  std::optional<int> culprit;  // the rank that has failed, where it is another one
  std::string_view before;     // what else was in the line: other ranks write to the same place
};

/// What a line notes, if anything.
std::optional<ExitNote> find_exit_note(std::string_view line);

}  // namespace tutti
