#pragma once

#include <cstddef>

namespace tutti {

/// mpirun gives ranks a terminal of its own making, even when its output goes to a file. So who starts it says, by
/// setting this for the ranks, that there is a real one.
inline constexpr char kTerminalVariable[] = "TUTTI_TERMINAL";

/// Whether somebody watches stdout, so that a line of progress may be written over and over.
bool stdout_is_terminal();

/// How many columns the terminal has that stdout goes to: what COLUMNS says, else what the terminal does. 0: there is
/// no terminal, or nobody knows.
std::size_t terminal_width();

}  // namespace tutti
