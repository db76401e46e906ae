#include "base/json_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonFiles, AreReadAsDeepAsAnythingOfOursIs) {
  const std::string text = std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']');
  EXPECT_EQ(parse_json(text, "file.json").dump(), text);
  EXPECT_EQ(parse_json("\"" + std::string(1000, '[') + "\\\"[\"", "file.json").get<std::string>().size(), 1002U);
}

TEST(JsonFiles, RefuseWhatIsNestedDeeperThanAStackIs) {
  EXPECT_THAT(refusal("{\n\"a\":" + std::string(400'000, '[')),
              AllOf(HasSubstr("file.json, line 2"), HasSubstr("deep")));
  EXPECT_THAT(refusal(std::string(400'000, '[') + std::string(400'000, ']')), HasSubstr("deep"));
}

TEST(JsonFiles, NameTheLineOfWhatIsNoJson) {
  EXPECT_THAT(refusal("{\n\n\"a\": nothing}"), HasSubstr("file.json, line 3: this is no JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("file.json, line 1"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("file.json"));
}

}  // namespace
}  // namespace tutti
