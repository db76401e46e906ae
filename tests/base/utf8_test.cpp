#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Utf8, IsTextOfAnyLanguage) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("plain ± 日本 \U0001F600"));
}

TEST(Utf8, IsNoOtherBytes) {
  EXPECT_FALSE(is_utf8("\xff"));
  EXPECT_FALSE(is_utf8("caf\xe9"));
  EXPECT_FALSE(is_utf8("\xc3"));              // cut off
  EXPECT_FALSE(is_utf8("\xc0\xaf"));          // '/', longer than needed
  EXPECT_FALSE(is_utf8("\xe0\x80\xaf"));      // and longer still
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));      // half of a character
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));  // beyond the last one
}

TEST(Utf8, MarksWhatIsNone) {
  EXPECT_EQ(valid_utf8("± \xff"), "± \ufffd");
  EXPECT_EQ(valid_utf8("a\xc3"), "a\ufffd");
}

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("a\033[31mb\a\rc\177"), "a?[31mb??c?");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a?31m");
  EXPECT_EQ(printable("± é\n\tx"), "± é\n\tx");
}

}  // namespace
}  // namespace tutti
