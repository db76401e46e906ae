#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/idx_files.h"
#include "data/real_data.h"
#include "support/command.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs `tutti data …` in a folder without any data.
class DataCommand : public ::testing::Test {
 protected:
  CommandResult data(const std::string& arguments, const std::string& environment = "-u TUTTI_DATA") const {
    return run_command("cd " + folder_.path().string() + " && env " + environment + " " TUTTI_BINARY " data " +
                       arguments);
  }
  TempFolder folder_;
};

TEST_F(DataCommand, ListsWhatIsThereAndHowToGetTheRest) {
  const CommandResult result = data("list");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("20000 + 4000"), HasSubstr("`tutti data get mnist` fetches it"),
                                   HasSubstr("`tutti data get nuclei` says what to put where")));
}

TEST_F(DataCommand, ListsAnUnusableSetWithTheReason) {
  fs::create_directories(folder_.path() / "data/sst5");
  folder_.write("data/sst5/train.txt", "(2 fine)\n(2 broken\n");
  folder_.write("data/sst5/test.txt", "(2 fine)\n");
  EXPECT_THAT(data("").output, HasSubstr("unusable: data/sst5/train.txt:2: column"));
}

TEST_F(DataCommand, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(data("check mnist").exit_code, 2);
  EXPECT_EQ(data("verify").exit_code, 2);
  const CommandResult result = data("verify mnits");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("did you mean 'mnist'?"));
}

TEST_F(DataCommand, SaysWhatToPutWhereForWhatCannotBeFetched) {
  const CommandResult result = data("get nuclei");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("images/ID.png"), HasSubstr("data/dsb2018-nuclei-256")));
}

TEST_F(DataCommand, VerifiesDrawnData) {
  const CommandResult result = data("verify digits");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("20000 training and 4000 test samples"));
}

TEST_F(DataCommand, VerifiesAgainstAListOfChecksums) {
  fs::create_directories(folder_.path() / "texts");
  folder_.write("texts/a.txt", "One. Two.");
  folder_.write("texts/SHA256SUMS", std::string(64, '0') + "  a.txt\n" + std::string(64, '1') + "  b.txt\n");
  const CommandResult result = data("verify text --data-folder texts");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("texts/a.txt: its SHA-256 is"), HasSubstr("texts/b.txt: is missing")));
}

TEST_F(DataCommand, FetchesFromAMirrorAndVerifies) {
  TUTTI_REAL_DATA(real, "sst5");
  const std::string mirror = "-u TUTTI_DATA TUTTI_DATA_MIRROR=file://" + fs::canonical(real.parent_path()).string();
  CommandResult result = data("get sst5", mirror);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("data/sst5/train.txt: fetched, 2.2 MB, SHA-256 as expected"));
  EXPECT_THAT(data("get sst5", mirror).output, AllOf(HasSubstr("is there"), Not(HasSubstr("fetched"))));
  result = data("verify sst5");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("8544 training and 2210 test samples, all of them read")));

  std::string damaged = read_file(folder_.path() / "data/sst5/test.txt");
  damaged[100] ^= 1;
  folder_.write("data/sst5/test.txt", damaged);
  result = data("verify sst5");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("WRONG  data/sst5/test.txt: its SHA-256 is"));
  result = data("get sst5", mirror);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("data/sst5/test.txt is there already, but is not the known file"));
}

TEST_F(DataCommand, SaysSoWhenASourceCannotBeReached) {
  const CommandResult result =
      data("get mnist", "-u TUTTI_DATA no_proxy=127.0.0.1 TUTTI_DATA_MIRROR=http://127.0.0.1:1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("cannot fetch http://127.0.0.1:1/mnist/train-images-idx3-ubyte.gz"));
}

}  // namespace
}  // namespace tutti::test
