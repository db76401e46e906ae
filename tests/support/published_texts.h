#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace tutti::test {

/// The folder of published results: $TUTTI_PUBLISHED, else shared/published beside the checkout; or an empty path.
inline std::filesystem::path published_folder() {
  std::filesystem::path folder = std::filesystem::path(TUTTI_SOURCE_DIR) / "../shared/published";
  if (const char* given = std::getenv("TUTTI_PUBLISHED"); given != nullptr && *given != '\0') folder = given;
  return std::filesystem::exists(folder) ? folder : std::filesystem::path();
}

inline bool must_have_published() {
  const char* const required = std::getenv("TUTTI_REQUIRE_DATA");
  return required != nullptr && std::string(required) == "1";
}

}  // namespace tutti::test

/// Defines `content`, that of a published text; where there is none, skips the test, or fails it if data is required.
#define TUTTI_PUBLISHED_TEXT(content, name)                                                                       \
  if (tutti::test::published_folder().empty()) {                                                                  \
    ASSERT_FALSE(tutti::test::must_have_published()) << "TUTTI_REQUIRE_DATA=1, but there are no published texts"; \
    GTEST_SKIP() << "no published texts; set TUTTI_PUBLISHED to the folder that contains " name;                  \
  }                                                                                                               \
  const std::string content = tutti::read_file(tutti::test::published_folder() / (name))
