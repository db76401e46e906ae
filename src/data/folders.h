#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tutti {

/// Where a data set's files may lie, in the order of looking: `given` alone if it is not empty, else
/// $TUTTI_DATA/NAME, data/NAME, ../shared/data/NAME.
std::vector<std::filesystem::path> data_folders(const std::string& given, const std::string& name);

/// The first of these folders that exists, or an empty path. What was given may be a file.
std::filesystem::path find_data_folder(const std::string& given, const std::string& name);

/// As find_data_folder, but throws Error that lists where it looked, then says `what_to_put`.
std::filesystem::path require_data_folder(const std::string& given, const std::string& name,
                                          const std::string& what_to_put);

/// "\n  /here\n  /there": folders as absolute paths, for such an Error.
std::string list_folders(const std::vector<std::filesystem::path>& folders);

}  // namespace tutti
