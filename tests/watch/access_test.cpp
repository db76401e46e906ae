#include "watch/access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "watch/sample_run.h"

namespace tutti {
namespace {

TEST(Access, TellsTheTokenFromEverythingElse) {
  const std::string token = "0123456789abcdef";
  EXPECT_TRUE(is_token(token, token));
  for (const char* other : {"", "0", "0123456789abcdeF", "0123456789abcdef0", "1123456789abcdef"})
    EXPECT_FALSE(is_token(other, token)) << other;
}

TEST(Access, MakesTokensThatNobodyGuesses) {
  const std::string token = new_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(problem_of_token(token), "");
  EXPECT_NE(token, new_token());
  EXPECT_NE(problem_of_token("short"), "");
  EXPECT_NE(problem_of_token("not for a cookie;"), "");
  EXPECT_NE(problem_of_token(std::string(300, 'a')), "");
}

TEST(Access, KeepsATokenThatOnlyItsOwnerCanRead) {
  const SampleRuns runs("tutti-access-test");
  const std::string file = (runs.folder() / ".watch-token").string();
  const std::string token = kept_token(file);
  EXPECT_EQ(kept_token(file), token);
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  ::chmod(file.c_str(), 0644);
  EXPECT_NE(kept_token(file), token) << "others may have read it";
  write_file_atomically(file, "x\n", Readers::owner);
  EXPECT_EQ(problem_of_token(kept_token(file)), "");
  EXPECT_EQ(problem_of_token(kept_token("/proc/nowhere/token")), "") << "where none can be kept, one for now";
}

TEST(Access, KnowsTheNamesOfThisMachine) {
  for (const char* own : {"127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "[::1]", "[::1]:8080"})
    EXPECT_TRUE(names_loopback(own)) << own;
  for (const char* other : {"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
                            "[::1", "[::2]:80", "192.168.1.5"})
    EXPECT_FALSE(names_loopback(other)) << other;
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("192.168.1.5"));
}

TEST(Access, FindsACookieAmongOthers) {
  EXPECT_EQ(cookie_of("a=1; tutti=secret; b=2", "tutti"), "secret");
  EXPECT_EQ(cookie_of("tutti=secret", "tutti"), "secret");
  EXPECT_EQ(cookie_of("a=1; xtutti=secret; tutti", "tutti"), "");
  EXPECT_EQ(cookie_of("", "tutti"), "");
}

}  // namespace
}  // namespace tutti
