#include "base/shipped_files.h"

namespace tutti {

namespace fs = std::filesystem;

fs::path shipped_folder(const std::string& name, const fs::path& in_source) {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  if (problem) return in_source;
  const fs::path installed = program.parent_path().parent_path() / "share" / "tutti" / name;
  return fs::is_directory(installed, problem) ? installed : in_source;
}

}  // namespace tutti
