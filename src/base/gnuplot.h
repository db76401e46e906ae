#pragma once

#include <filesystem>
#include <string>

namespace tutti {

// Whatever text goes into a program of gnuplot's goes through one of these: records come from anybody, and gnuplot runs
// commands. Texts do not belong into data blocks, which a line of theirs could end.

/// A text as gnuplot takes it for itself: between double quotes, with everything that could mean something to gnuplot
/// as its number. Between single quotes a text could begin with a quote, which gnuplot takes for an end. Line ends and
/// other control characters become spaces.
std::string gnuplot_quoted(const std::string& text);
/// The same as the label of a tic, which gnuplot takes for a format.
std::string gnuplot_tic_label(const std::string& text);
/// The name of a file to write; a relative one could begin with '|', a command. Throws Error for one that cannot be
/// written in a program.
std::string gnuplot_file(const std::filesystem::path& path);

/// Runs a program of gnuplot's; what it draws to is its own business. False where there is no gnuplot; throws Error
/// when it fails.
bool draw_with_gnuplot(const std::string& program);

}  // namespace tutti
