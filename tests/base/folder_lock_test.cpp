#include "base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/files.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class FolderLocks : public testing::Test {
 protected:
  void SetUp() override { make_folders(folder_); }
  void TearDown() override { remove_tree(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / ("tutti-folder-lock-test-" + std::to_string(::getpid()));
};

TEST_F(FolderLocks, AreHeldByOneAndNameIt) {
  std::optional<FolderLock> first(folder_);
  EXPECT_TRUE(first->is_held());
  EXPECT_EQ(first->holder(), "");
  // A lock belongs to the opened file, so that this process can ask in another's place.
  const FolderLock second(folder_);
  EXPECT_FALSE(second.is_held());
  EXPECT_EQ(second.holder().rfind("process " + std::to_string(::getpid()) + " on ", 0), 0U) << second.holder();
  first.reset();
  EXPECT_TRUE(FolderLock(folder_).is_held());
}

TEST_F(FolderLocks, AreFreeAgainHoweverTheirHolderEnds) {
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FolderLock(folder_).is_held());
}

TEST_F(FolderLocks, AreSeenByThoseWhoOnlyLook) {
  EXPECT_EQ(lock_holder(folder_), "");
  EXPECT_FALSE(fs::exists(folder_ / "lock"));
  std::optional<FolderLock> lock(folder_);
  EXPECT_EQ(lock_holder(folder_).rfind("process " + std::to_string(::getpid()) + " on ", 0), 0U);
  lock.reset();
  EXPECT_EQ(lock_holder(folder_), "");
  EXPECT_TRUE(FolderLock(folder_).is_held());
}

}  // namespace
}  // namespace tutti
