#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/idx_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string images_error(const fs::path& path) {
  return error_text([&] { read_idx_images(path); });
}
std::string labels_error(const fs::path& path) {
  return error_text([&] { read_idx_labels(path, 10); });
}

const std::string kSixPixels = "abcdef";

TEST(Idx, ReadsImagesPlainAndGzipped) {
  const TempFolder folder;
  const std::string content = idx_images(2, 1, 3, kSixPixels);
  for (const fs::path& path : {folder.write("plain", content), folder.write("packed.gz", gzipped(content))}) {
    const IdxImages images = read_idx_images(path);
    EXPECT_EQ(images.count, 2);
    EXPECT_EQ(images.rows, 1);
    EXPECT_EQ(images.columns, 3);
    EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()), kSixPixels);
  }
}

TEST(Idx, ReadsLabelsPlainAndGzipped) {
  const TempFolder folder;
  const std::string content = idx_labels(3, std::string("\x07\x00\x09", 3));
  for (const fs::path& path : {folder.write("plain", content), folder.write("packed.gz", gzipped(content))}) {
    EXPECT_EQ(read_idx_labels(path, 10), (std::vector<uint8_t>{7, 0, 9}));
  }
}

TEST(Idx, ReadsFilesLargerThanOneReadOfThem) {
  const TempFolder folder;
  const std::string pixels(5'000'000, 'p');
  const IdxImages images = read_idx_images(folder.write("big.gz", gzipped(idx_images(5000, 25, 40, pixels))));
  EXPECT_EQ(images.pixels.size(), pixels.size());
  EXPECT_EQ(images.pixels.back(), 'p');
}

TEST(Idx, NamesAMissingFileAndWhereToPutIt) {
  EXPECT_THAT(labels_error("/nowhere/labels"),
              AllOf(HasSubstr("/nowhere/labels"), HasSubstr("No such file"), HasSubstr("Put the file there")));
}

TEST(Idx, RefusesAFolder) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder.path()), AllOf(HasSubstr(folder.path().string()), HasSubstr("is a folder")));
}

TEST(Idx, SaysWhatATruncatedFileLacks) {
  const TempFolder folder;
  const std::string content = idx_images(2, 1, 3, "abcd");
  for (const fs::path& path : {folder.write("plain", content), folder.write("packed.gz", gzipped(content))}) {
    EXPECT_THAT(images_error(path), AllOf(HasSubstr(path.string()), HasSubstr("2 images of 1x3 pixels, 6 bytes"),
                                          HasSubstr("only 4 follow"), HasSubstr("fresh copy")));
  }
}

TEST(Idx, SaysThatAHeaderIsTruncated) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder.write("short", big_endian(2051) + "ab")),
              AllOf(HasSubstr("takes 16 bytes"), HasSubstr("found 6")));
  EXPECT_THAT(labels_error(folder.write("empty", "")), AllOf(HasSubstr("takes 8 bytes"), HasSubstr("found 0")));
}

TEST(Idx, SaysThatAGzipStreamWasCutOff) {
  const TempFolder folder;
  std::string pixels(100'000, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i * 2654435761U >> 13);
  const std::string packed = gzipped(idx_images(100, 25, 40, pixels));
  const fs::path half = folder.write("half.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(images_error(half),
              AllOf(HasSubstr("truncated"), HasSubstr("100000 bytes"), HasSubstr("gzip stream ends")));
  const fs::path no_end = folder.write("no_end.gz", packed.substr(0, packed.size() - 4));
  EXPECT_THAT(images_error(no_end), AllOf(HasSubstr("truncated"), HasSubstr("gzip stream ends")));
}

TEST(Idx, SaysThatAGzipStreamIsCorrupt) {
  const TempFolder folder;
  std::string packed = gzipped(idx_images(100, 25, 40, std::string(100'000, 'x')));
  packed[packed.size() / 2] ^= 0x55;
  const fs::path damaged = folder.write("damaged.gz", packed);
  EXPECT_THAT(images_error(damaged), AllOf(HasSubstr(damaged.string()), HasSubstr("gzip stream is corrupt")));
}

TEST(Idx, NoticesAWrongChecksum) {
  const TempFolder folder;
  std::string packed = gzipped(idx_labels(2, std::string("\x01\x02", 2)));
  packed[packed.size() - 8] ^= 1;  // the CRC comes before the four bytes of the length
  EXPECT_THAT(labels_error(folder.write("crc.gz", packed)), HasSubstr("gzip stream is corrupt"));
}

TEST(Idx, RefusesTrailingBytes) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder.write("long", idx_images(2, 1, 3, kSixPixels + "!"))),
              AllOf(HasSubstr("6 bytes"), HasSubstr("more follow")));
}

TEST(Idx, NamesTheMagicNumberItFoundAndExpected) {
  const TempFolder folder;
  EXPECT_THAT(
      labels_error(folder.write("text", "hello, world")),
      AllOf(HasSubstr("found magic number 1751477356"), HasSubstr("expected 2049"), HasSubstr("not an IDX file")));
}

TEST(Idx, HintsAtSwappedFiles) {
  const TempFolder folder;
  const fs::path images = folder.write("images", idx_images(2, 1, 3, kSixPixels));
  const fs::path labels = folder.write("labels", idx_labels(1, std::string(1, '\1')));
  EXPECT_THAT(labels_error(images),
              AllOf(HasSubstr("2051"), HasSubstr("2049"), HasSubstr("holds images"), HasSubstr("swapped")));
  EXPECT_THAT(images_error(labels),
              AllOf(HasSubstr("2051"), HasSubstr("2049"), HasSubstr("holds labels"), HasSubstr("swapped")));
}

TEST(Idx, HintsAtAGzNameOnSomethingElse) {
  const TempFolder folder;
  EXPECT_THAT(images_error(folder.write("page.gz", "<html>404 not found</html>")),
              HasSubstr("is named .gz but is not gzipped"));
}

TEST(Idx, DoesNotTakeMemoryForSizesThatAHeaderMerelyClaims) {
  const TempFolder folder;
  // 4 billion images of 4096x4096 would be 72 PB.
  EXPECT_THAT(images_error(folder.write("huge", idx_images(0xffffffff, 4096, 4096, kSixPixels))),
              AllOf(HasSubstr("truncated"), HasSubstr("72057594021150720 bytes"), HasSubstr("only 6 follow")));
  EXPECT_THAT(images_error(folder.write("wide", idx_images(1, 28, 0x10000000, kSixPixels))),
              AllOf(HasSubstr("28x268435456"), HasSubstr("cannot be")));
  EXPECT_THAT(images_error(folder.write("none", idx_images(0, 28, 28, ""))), HasSubstr("0 images of 28x28"));
}

TEST(Idx, RefusesALabelOutsideTheClasses) {
  const TempFolder folder;
  EXPECT_THAT(labels_error(folder.write("labels", idx_labels(3, "\x01\x0a\x02"))),
              AllOf(HasSubstr("label 10 of sample 1"), HasSubstr("outside 0 to 9")));
}

TEST(Idx, RefusesImagesAndLabelsThatDifferInNumber) {
  const IdxImages images{2, 1, 1, {1, 2}};
  EXPECT_THAT(error_text([&] {
                check_idx_pair("i.gz", images, "l.gz", {1, 2, 3});
              }),
              AllOf(HasSubstr("i.gz holds 2 images"), HasSubstr("l.gz holds 3 labels")));
  EXPECT_EQ(error_text([&] { check_idx_pair("i.gz", images, "l.gz", {1, 2}); }), "");
}

TEST(Idx, DoesNotUnpackASmallFileThatFillsTheMemory) {
  const TempFolder folder;
  // 300 KB of zeros' gzip, of which a header makes a thousand times as much.
  const std::string bomb = gzipped(idx_images(300'000, 32, 32, std::string(300'000 * 32 * 32, '\0')));
  EXPECT_LT(bomb.size(), 1'000'000U);
  EXPECT_THAT(images_error(folder.write("bomb.gz", bomb)),
              AllOf(HasSubstr("bomb.gz"), HasSubstr("more than 100 times as much"), HasSubstr("gunzip")));
}

}  // namespace
}  // namespace tutti::test
