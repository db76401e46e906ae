#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace tutti::test {

/// A file of figures that comes with the repository: "unet_gpus_workers.csv".
inline std::filesystem::path published_figures(const std::string& name) {
  return std::filesystem::path(TUTTI_SOURCE_DIR) / "published" / name;
}

/// The folder of the texts that those figures were taken from: $TUTTI_PUBLISHED, else shared/published beside the
/// checkout. An empty path where there is none: texts are their authors', and do not come with the repository.
inline std::filesystem::path published_folder() {
  std::filesystem::path folder = std::filesystem::path(TUTTI_SOURCE_DIR) / "../shared/published";
  if (const char* given = std::getenv("TUTTI_PUBLISHED"); given != nullptr && *given != '\0') folder = given;
  return std::filesystem::exists(folder) ? folder : std::filesystem::path();
}

}  // namespace tutti::test
