#pragma once

#include <filesystem>
#include <string>

namespace tutti {

// Files that a run writes beside its own, where an option asks for one. That they cannot be written is found out before
// anything is trained; what happens later sinks no run.

/// Throws UsageError where `option` names a file that cannot be written. "": there is none. `run_folder` may still have
/// to be made, with all that lies in it.
void require_writable(const std::string& option, const std::filesystem::path& file,
                      const std::filesystem::path& run_folder);

/// Whether a file is in this folder or in one of its folders, whether they are there or not.
bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder);

/// Writes the file, atomically. Returns why that did not work, or "".
std::string problem_of_writing(const std::filesystem::path& file, const std::string& content);

}  // namespace tutti
