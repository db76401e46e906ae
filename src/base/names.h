#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Whether this is one of the names.
bool contains(const std::vector<std::string>& names, std::string_view name);

/// The known name with the fewest edits to `name`, or "" when none is near enough to be a likely slip.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "unknown strategy 'wfpb'; did you mean 'wfbp'? Known: bsp, buckets, wfbp." for an Error.
std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known);

/// Why this cannot be the name of a folder of ours: "it has a '/' in it"; "" if it can. Text that people can read, and
/// that stays in the folder where it is put: no '/', no "..".
std::string problem_of_folder_name(std::string_view name);

/// Whether this can be the name or address of a machine, or USER@NAME: letters, digits and . _ -, no '-' first, which
/// ssh would take for an option.
bool is_host_name(std::string_view name);

}  // namespace tutti
