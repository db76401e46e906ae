#include "data/folders.h"

#include <cstdlib>

#include "tutti/error.h"

namespace tutti {

namespace fs = std::filesystem;

std::vector<fs::path> data_folders(const std::string& given, const std::string& name) {
  if (!given.empty()) return {given};
  std::vector<fs::path> folders;
  if (const char* root = std::getenv("TUTTI_DATA"); root != nullptr && *root != '\0') {
    folders.push_back(fs::path(root) / name);
  }
  folders.push_back(fs::path("data") / name);
  folders.push_back(fs::path("../shared/data") / name);
  return folders;
}

fs::path find_data_folder(const std::string& given, const std::string& name) {
  for (const fs::path& folder : data_folders(given, name)) {
    std::error_code ignored;
    if (given.empty() ? fs::is_directory(folder, ignored) : fs::exists(folder, ignored)) return folder;
  }
  return {};
}

fs::path require_data_folder(const std::string& given, const std::string& name, const std::string& what_to_put) {
  fs::path folder = find_data_folder(given, name);
  if (folder.empty() && !given.empty()) throw Error("{}: there is no such file or folder. {}", given, what_to_put);
  if (folder.empty()) {
    throw Error("{}: no folder with its files. Looked for:{}\n{}", name, list_folders(data_folders(given, name)),
                what_to_put);
  }
  return folder;
}

std::string list_folders(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    text += "\n  " + fs::absolute(folder, ignored).lexically_normal().string();
  }
  return text;
}

}  // namespace tutti
