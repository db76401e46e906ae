#pragma once

namespace tutti {

/// mpirun gives ranks a terminal of its own making, even when its output goes to a file. So who starts it says, by
/// setting this for the ranks, that there is a real one.
inline constexpr char kTerminalVariable[] = "TUTTI_TERMINAL";

/// Whether somebody watches stdout, so that a line of progress may be written over and over.
bool stdout_is_terminal();

}  // namespace tutti
