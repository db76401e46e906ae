#include "base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tutti {
namespace {

std::string sha256_of(std::string_view text) {
  Sha256 sum;
  sum.update(text);
  return sum.hex();
}

// The examples of FIPS 180-2, appendix B, and the digest of nothing.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArriveInPieces) {
  const std::string text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (std::size_t piece : {1, 7, 55, 56}) {
    Sha256 sum;
    for (std::size_t at = 0; at < text.size(); at += piece)
      sum.update(text.data() + at, std::min(piece, text.size() - at));
    sum.update("");
    EXPECT_EQ(sum.hex(), sha256_of(text)) << "pieces of " << piece;
  }
}

TEST(Sha256, CountsZeroBytes) {
  EXPECT_NE(sha256_of(std::string_view("\0", 1)), sha256_of(""));
  EXPECT_EQ(sha256_of(std::string_view("\0", 1)), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

}  // namespace
}  // namespace tutti
