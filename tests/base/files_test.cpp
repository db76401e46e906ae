#include "base/files.h"
#include "base/device_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/device_files.h"
#include "base/yaml_files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// An empty folder of its own for each test, gone afterwards.
class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "tutti_files_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw Error("cannot create {}", pattern);
    folder_ = pattern;
  }
  ~Files() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    remove_tree(folder_);
  }

  int entries() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

/// What an Error says, or "" if none was thrown.
template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Makes writes beyond `bytes` into a file fail, as a full disk does, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(Files, ReadWhatWasWrittenWhateverTheBytes) {
  std::string content(200'000, 'x');  // more than one read
  content[0] = '\0';
  content[100'000] = '\n';
  content.back() = '\xff';
  write_file_atomically(folder_ / "data", content);
  EXPECT_EQ(read_file(folder_ / "data"), content);
  EXPECT_EQ(entries(), 1);  // no temporary file is left behind
}

TEST_F(Files, AnEmptyFileIsWrittenAndRead) {
  write_file_atomically(folder_ / "empty", "");
  EXPECT_TRUE(fs::exists(folder_ / "empty"));
  EXPECT_EQ(read_file(folder_ / "empty"), "");
}

TEST_F(Files, AShorterContentReplacesALongerOneEntirely) {
  write_file_atomically(folder_ / "data", "a long first content");
  write_file_atomically(folder_ / "data", "short");
  EXPECT_EQ(read_file(folder_ / "data"), "short");
}

TEST_F(Files, ReadersOfTheOldFileKeepItsContent) {
  const fs::path old_name = folder_ / "still_open";
  write_file_atomically(folder_ / "data", "old");
  fs::create_hard_link(folder_ / "data", old_name);  // stands for a reader that has it open
  write_file_atomically(folder_ / "data", "new");
  EXPECT_EQ(read_file(old_name), "old");
}

TEST_F(Files, AFullDiskLeavesTheOldContentAndNoTemporaryFile) {
  write_file_atomically(folder_ / "data", "old");
  std::string error;
  {
    const FileSizeLimit limit(4096);
    error = error_of([&] { write_file_atomically(folder_ / "data", std::string(100'000, 'n')); });
  }
  EXPECT_NE(error.find((folder_ / "data").string()), std::string::npos) << error;
  EXPECT_NE(error.find("File too large"), std::string::npos) << error;
  EXPECT_EQ(read_file(folder_ / "data"), "old");
  EXPECT_EQ(entries(), 1);
}

// A pipe: were this wrong, root would lose a device.
TEST_F(Files, WhatIsNoFileIsWrittenToAndStaysThere) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "through");
  char got[16] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  EXPECT_TRUE(is_device_file(pipe));
  EXPECT_TRUE(is_device_file("/dev/null"));
  EXPECT_FALSE(is_device_file(folder_));
  EXPECT_FALSE(is_device_file(folder_ / "nothing"));
  ::close(reader);
}

TEST_F(Files, AFolderWithoutWritePermissionLeavesTheOldContent) {
  write_file_atomically(folder_ / "data", "old");
  fs::permissions(folder_, static_cast<fs::perms>(0555));
  const uid_t user = ::geteuid();
  constexpr uid_t nobody = 65534;
  if (user == 0 && ::seteuid(nobody) != 0) GTEST_SKIP() << "root may write everywhere and cannot become another here";
  const std::string error = error_of([&] { write_file_atomically(folder_ / "data", "new"); });
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_NE(error.find("Permission denied"), std::string::npos) << error;
  EXPECT_EQ(read_file(folder_ / "data"), "old");
}

TEST_F(Files, ANameThatIsAFolderIsAnErrorAndLeavesNoTemporaryFile) {
  fs::create_directories(folder_ / "data" / "inside");
  const std::string error = error_of([&] { write_file_atomically(folder_ / "data", "new"); });
  EXPECT_NE(error.find("cannot rename"), std::string::npos) << error;
  EXPECT_TRUE(fs::exists(folder_ / "data" / "inside"));
  EXPECT_EQ(entries(), 1);
}

TEST_F(Files, WritingIntoAMissingFolderNamesThePath) {
  const fs::path path = folder_ / "missing" / "data";
  const std::string error = error_of([&] { write_file_atomically(path, "new"); });
  EXPECT_NE(error.find(path.string()), std::string::npos) << error;
  EXPECT_NE(error.find("No such file or directory"), std::string::npos) << error;
}

TEST_F(Files, ReadingWhatIsNotThereNamesThePathAndTheReason) {
  const fs::path path = folder_ / "missing";
  EXPECT_EQ(error_of([&] { read_file(path); }), "cannot open " + path.string() + ": No such file or directory");
  const std::string of_folder = error_of([&] { read_file(folder_); });
  EXPECT_EQ(of_folder, "cannot read " + folder_.string() + ": Is a directory");
}

TEST_F(Files, ReadFilesWhoseSizeIsNotKnownBefore) {
  EXPECT_NE(read_file("/proc/self/status").find("Pid:"), std::string::npos);  // its size reads as 0
}

TEST_F(Files, FlushTakesFilesAndFoldersAndNamesWhatIsMissing) {
  write_file_atomically(folder_ / "data", "x");
  EXPECT_NO_THROW(flush_to_disk(folder_ / "data"));
  EXPECT_NO_THROW(flush_to_disk(folder_));
  EXPECT_NE(error_of([&] { flush_to_disk(folder_ / "missing"); }).find("missing"), std::string::npos);
}

TEST_F(Files, MakeFoldersMakesAllOfThemAndIsContentWithThoseThere) {
  make_folders(folder_ / "a" / "b" / "c");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b" / "c"));
  EXPECT_NO_THROW(make_folders(folder_ / "a" / "b"));
}

TEST_F(Files, MakeFoldersUnderAFileNamesThePath) {
  write_file_atomically(folder_ / "file", "x");
  const fs::path path = folder_ / "file" / "below";
  const std::string error = error_of([&] { make_folders(path); });
  EXPECT_NE(error.find(path.string()), std::string::npos) << error;
  EXPECT_NE(error.find("Not a directory"), std::string::npos) << error;
}

TEST(ReadableBytes, ChoosesTheUnitThatKeepsThreeDigits) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(999), "999 B");
  EXPECT_EQ(readable_bytes(1000), "1.0 KB");
  EXPECT_EQ(readable_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(readable_bytes(7'000'000'000), "7.0 GB");
  EXPECT_EQ(readable_bytes(5'000'000'000'000'000), "5000.0 TB");  // the largest unit takes the rest
}

TEST_F(Files, OfYamlAreFoundByNameInTheFirstFolderThatHasThem) {
  for (const char* name : {"own/b.yaml", "own/c.txt", "shipped/a.yaml", "shipped/b.yaml"}) {
    make_folders((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, "");
  }
  const NamedFiles files = yaml_files({folder_ / "own", folder_ / "missing", folder_ / "shipped"});
  EXPECT_EQ(names_in(files), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(files.at("a"), folder_ / "shipped/a.yaml");
  EXPECT_EQ(files.at("b"), folder_ / "own/b.yaml");
}

/// Lets everybody do everything with new files, while it lives.
class LaxUmask {
 public:
  LaxUmask() : before_(::umask(0)) {}
  LaxUmask(const LaxUmask&) = delete;
  ~LaxUmask() { ::umask(before_); }

 private:
  mode_t before_;
};

int mode_of(const fs::path& path) { return static_cast<int>(fs::status(path).permissions() & fs::perms::mask); }

TEST_F(Files, CanBeWrittenByTheirOwnerOnlyAlsoUnderALaxUmask) {
  const LaxUmask lax;
  make_folders(folder_ / "a/b");
  make_folders(folder_ / "c/d", Readers::owner);
  EXPECT_EQ(mode_of(folder_ / "a"), 0755);
  EXPECT_EQ(mode_of(folder_ / "a/b"), 0755);
  EXPECT_EQ(mode_of(folder_ / "c"), 0700);
  EXPECT_EQ(mode_of(folder_ / "c/d"), 0700);
  write_file_atomically(folder_ / "shown", "x");
  write_file_atomically(folder_ / "own", "x", Readers::owner);
  EXPECT_EQ(mode_of(folder_ / "shown"), 0644);
  EXPECT_EQ(mode_of(folder_ / "own"), 0600);
}

TEST_F(Files, AreNotWrittenThroughALinkThatSomebodyHasPutThere) {
  write_file_atomically(folder_ / "victim", "precious");
  fs::create_symlink(folder_ / "victim", folder_ / "file.tmp");
  write_file_atomically(folder_ / "file", "new");
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
  EXPECT_EQ(read_file(folder_ / "file"), "new");
  EXPECT_FALSE(fs::is_symlink(folder_ / "file"));
}

TEST_F(Files, FoldersThatAreThereStayAsTheyAre) {
  make_folders(folder_ / "a");
  make_folders(folder_ / "a/", Readers::owner);
  EXPECT_EQ(mode_of(folder_ / "a"), 0755);
  write_file_atomically(folder_ / "file", "x");
  EXPECT_NE(error_of([&] { make_folders(folder_ / "file/b"); }), "");
}

}  // namespace
}  // namespace tutti
