#include "launch/mpirun_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string host() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

/// As Open MPI 4 leaves things when it is killed.
class KilledMpirun : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("mpirun_files_" + std::to_string(::getpid()));
    ::setenv("OMPI_MCA_orte_tmpdir_base", base_.c_str(), 1);
    session(7001, job_);
  }
  void TearDown() override {
    ::unsetenv("OMPI_MCA_orte_tmpdir_base");
    remove_tree(base_);
    for (const fs::path& path : segments_) fs::remove(path);
  }

  fs::path folder() const { return base_ / ("ompi." + host() + "." + std::to_string(::geteuid())); }
  void session(int pid, uint32_t job) {
    const fs::path place = folder() / ("pid." + std::to_string(pid));
    fs::create_directories(place / "0");
    std::ofstream(place / "contact.txt") << job << ".0;tcp://127.0.0.1:1\n" << pid << "\n";
  }
  fs::path segment(uint32_t job) {
    char number[16];
    std::snprintf(number, sizeof number, "%x", job);
    const fs::path path = "/dev/shm/vader_segment." + host() + "." + std::to_string(::geteuid()) + "." + number + ".0";
    std::ofstream(path) << "x";
    segments_.push_back(path);
    return path;
  }

  const uint32_t job_ = 0xbad00000U + (static_cast<uint32_t>(::getpid()) << 16 & 0xf0000U);
  fs::path base_;
  std::vector<fs::path> segments_;
};

TEST_F(KilledMpirun, LeavesNothing) {
  const fs::path mine = segment(job_ + 1);
  remove_mpirun_files(7001);
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_FALSE(fs::exists(mine));
}

TEST_F(KilledMpirun, OtherJobsKeepWhatIsTheirs) {
  session(7002, job_ ^ 0x10000000U);
  const fs::path theirs = segment((job_ ^ 0x10000000U) + 1);
  remove_mpirun_files(7001);
  EXPECT_TRUE(fs::exists(folder() / "pid.7002" / "contact.txt"));
  EXPECT_FALSE(fs::exists(folder() / "pid.7001"));
  EXPECT_TRUE(fs::exists(theirs));
}

TEST_F(KilledMpirun, OneThatCleanedUpItselfIsNoError) { remove_mpirun_files(7003); }

}  // namespace
}  // namespace tutti
