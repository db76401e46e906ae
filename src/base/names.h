#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The known name with the fewest edits to `name`, or "" when none is near enough to be a likely slip.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "unknown strategy 'wfpb'; did you mean 'wfbp'? Known: bsp, buckets, wfbp." for an Error.
std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known);

}  // namespace tutti
