#pragma once

#include <string>

namespace tutti {

/// Text between gnuplot's single quotes, in which a quote is written twice.
std::string gnuplot_quoted(const std::string& text);

/// Runs a program of gnuplot's; what it draws to is its own business. False where there is no gnuplot; throws Error
/// when it fails.
bool draw_with_gnuplot(const std::string& program);

}  // namespace tutti
