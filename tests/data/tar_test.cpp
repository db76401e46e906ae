#include "data/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/idx_files.h"
#include "data/tar_files.h"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class Tar : public ::testing::Test {
 protected:
  fs::path write(const std::string& content) const { return folder_.write("x.tar", content); }
  std::string error(const std::string& content) const {
    return error_text([&] { list_tar(write(content)); });
  }
  TempFolder folder_;
};

TEST_F(Tar, ListsFilesAndReadsEachAtItsPlace) {
  const fs::path path = write(tar_member("a.txt", "first") + tar_member("d/", "", '5') +
                              tar_member("d/b.txt", std::string(600, 'b')) + tar_member("empty", "") + tar_end());
  const auto members = list_tar(path);
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[1].name, "d/b.txt");
  EXPECT_EQ(read_tar_member(path, members[0]), "first");
  EXPECT_EQ(read_tar_member(path, members[1]), std::string(600, 'b'));
  EXPECT_EQ(read_tar_member(path, members[2]), "");
}

TEST_F(Tar, KnowsLongNamesOfGnuAndOfPax) {
  const std::string name = std::string(150, 'n') + "/x.jpg";
  const std::string record = "path=" + name + "\n";
  const std::string pax = std::to_string(record.size() + 4) + " " + record;  // "166 " counts too
  const auto members = list_tar(write(tar_member("././@LongLink", name + '\0', 'L') + tar_member("short", "1") +
                                      tar_member("PaxHeaders", pax, 'x') + tar_member("short", "2") +
                                      tar_member("plain", "3") + tar_end()));
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, name);
  EXPECT_EQ(members[1].name, name);
  EXPECT_EQ(members[2].name, "plain");
}

TEST_F(Tar, DamagedInAnyWayIsOneErrorWithItsPlace) {
  const std::string good = tar_member("a.txt", std::string(700, 'a')) + tar_member("b.txt", "b");
  EXPECT_EQ(error(good), "") << "without empty blocks at its end";
  EXPECT_THAT(error("no tar"), HasSubstr("x.tar: at byte 0: it ends there"));
  for (const size_t at : {0U, 100U, 130U, 156U, 511U}) {
    std::string flipped = good;
    flipped[1536 + at] ^= 1;
    EXPECT_THAT(error(flipped), HasSubstr("x.tar: at byte 1536: not the header of a tar file")) << at;
  }
  EXPECT_THAT(error(good.substr(0, 1000)), HasSubstr("at byte 0: a file is said to be larger than what is left"));
  EXPECT_THAT(error(good.substr(0, 1600)), HasSubstr("at byte 1536: it ends there, in the middle of a header"));
  EXPECT_THAT(error(tar_member("pax", "9 path", 'x') + good), HasSubstr("pax header that cannot be read"));
  EXPECT_THAT(error_text([&] { list_tar(folder_.path() / "none.tar"); }), HasSubstr("none.tar: cannot open it"));
}

}  // namespace
}  // namespace tutti::test
