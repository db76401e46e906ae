#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tutti {

using NamedFiles = std::map<std::string, std::filesystem::path>;

/// The YAML files of these folders, by name without the extension; one in an earlier folder hides those of its name.
NamedFiles yaml_files(const std::vector<std::filesystem::path>& folders);
/// Their names, in order.
std::vector<std::string> names_in(const NamedFiles& files);

}  // namespace tutti
