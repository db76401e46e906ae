#include "published/published_files.h"

#include <filesystem>

#include "base/shipped_files.h"

namespace tutti {

namespace fs = std::filesystem;

std::string published_file(const std::string& name) {
  std::error_code ignored;
  const fs::path path = name;
  if (fs::exists(path, ignored) || path.parent_path() != "published") return name;
  const fs::path shipped = shipped_folder("published", TUTTI_PUBLISHED) / path.filename();
  return fs::exists(shipped, ignored) ? shipped.string() : name;
}

}  // namespace tutti
