#pragma once

#include <string>
#include <vector>

namespace tutti::cluster {

/// Returns if we are root. Else asks, on a terminal, whether to begin this command again with sudo, and does; or throws
/// Error saying what to do.
void require_root();

/// Throws Error naming the package when ip, tc or nsenter is missing.
void require_tools();

/// The words of the command line of this process, the program's name first.
std::vector<std::string> own_words();

}  // namespace tutti::cluster
