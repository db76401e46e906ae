#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tutti::test {

/// The folder of a real data set: $TUTTI_DATA/NAME, else shared/data/NAME beside the checkout; or an empty path.
inline std::filesystem::path real_data(const std::string& name) {
  std::filesystem::path root = std::filesystem::path(TUTTI_SOURCE_DIR) / "../shared/data";
  if (const char* given = std::getenv("TUTTI_DATA"); given != nullptr && *given != '\0') root = given;
  return std::filesystem::exists(root / name) ? root / name : std::filesystem::path();
}

inline bool must_have_real_data() {
  const char* const required = std::getenv("TUTTI_REQUIRE_DATA");
  return required != nullptr && std::string(required) == "1";
}

}  // namespace tutti::test

/// Defines `folder`, that of a real data set; where there is none, skips the test, or fails it if data is required.
#define TUTTI_REAL_DATA(folder, name)                                                                  \
  const std::filesystem::path folder = tutti::test::real_data(name);                                   \
  if (folder.empty()) {                                                                                \
    ASSERT_FALSE(tutti::test::must_have_real_data()) << "TUTTI_REQUIRE_DATA=1, but there is no " name; \
    GTEST_SKIP() << "no " name " files; set TUTTI_DATA to the folder that contains " name "/";         \
  }                                                                                                    \
  static_assert(true)
