#pragma once

#include <filesystem>
#include <string>

namespace tutti {

/// A folder of files that come with the program: PREFIX/share/tutti/NAME where it was installed as PREFIX/bin/tutti,
/// else `in_source`, where it was built from.
std::filesystem::path shipped_folder(const std::string& name, const std::filesystem::path& in_source);

}  // namespace tutti
