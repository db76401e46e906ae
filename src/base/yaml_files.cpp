#include "base/yaml_files.h"

namespace tutti {

NamedFiles yaml_files(const std::vector<std::filesystem::path>& folders) {
  NamedFiles files;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".yaml") files.emplace(entry->path().stem().string(), entry->path());
  }
  return files;
}

std::vector<std::string> names_in(const NamedFiles& files) {
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const auto& file : files) names.push_back(file.first);
  return names;
}

}  // namespace tutti
