#pragma once

#include <string>
#include <vector>

namespace tutti {

/// The files that `words` of a command line (--plugin FILE) and $TUTTI_PLUGIN name, which may be several between
/// colons.
std::vector<std::string> plugins_of(const std::vector<std::string>& words);

/// Loads a plug-in, see <tutti/plugin.h>, for as long as the process lives. Throws UsageError for a file that is none,
/// or that was built for something else, and what the plug-in throws.
void load_plugin(const std::string& file);

}  // namespace tutti
