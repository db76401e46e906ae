// Ranks that a signal stops, and whom the launcher names.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/files.h"
#include "launch/launcher.h"
#include "support/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// launch_ranks() in a process of its own, whose messages are kept.
class StoppedRanks : public testing::Test {
 protected:
  StoppedRanks() {
    char name[] = "/tmp/stopped_ranks_test.XXXXXX";
    folder_ = ::mkdtemp(name);
    options_.stop_limit = std::chrono::seconds(1);
    options_.finish_grace = std::chrono::milliseconds(300);
    options_.term_grace = std::chrono::milliseconds(300);
  }
  ~StoppedRanks() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    remove_tree(folder_);
  }

  /// Each of the ranks writes its pid to a file, then runs the script.
  void begin(int ranks, const std::string& text) {
    options_.ranks = ranks;
    options_.command = {"sh", "-c", "cd " + folder_.string() + "; echo $$ > pid.$TUTTI_RANK; " + text};
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ > 0) return;
    ::dup2(::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    ::_exit(launch_ranks(options_));
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string err() const { return fs::exists(folder_ / "err") ? read_file(folder_ / "err") : ""; }
  bool err_has(const std::string& part) const {
    return eventually([&] { return contains(err(), part); });
  }
  bool eventually(const std::function<bool()>& condition) const {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  pid_t pid_of(int rank) const {
    const fs::path file = folder_ / ("pid." + std::to_string(rank));
    std::string text;
    eventually([&] { return fs::exists(file) && (text = read_file(file)).find('\n') != std::string::npos; });
    const pid_t pid = text.empty() ? -1 : std::stoi(text);
    // Never a number that means more than one process to kill().
    if (pid <= 1) throw std::runtime_error("rank " + std::to_string(rank) + " has not come");
    return pid;
  }

  fs::path folder_;
  LaunchOptions options_;
  pid_t pid_ = -1;
};

TEST_F(StoppedRanks, AreNamedAndMayGoOn) {
  options_.stop_limit = std::chrono::minutes(1);
  begin(3, "while [ ! -e over ]; do sleep 0.05; done");
  const pid_t rank = pid_of(2);
  ::kill(rank, SIGSTOP);
  EXPECT_TRUE(err_has("rank 2 of 3 (pid " + std::to_string(rank) + ") is stopped (SIGSTOP)")) << err();
  EXPECT_TRUE(err_has("kill -CONT " + std::to_string(rank))) << err();
  ::kill(rank, SIGCONT);
  EXPECT_TRUE(err_has("rank 2 of 3 (pid " + std::to_string(rank) + ") goes on")) << err();
  ::close(::open((folder_ / "over").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(wait(), 0);
}

TEST_F(StoppedRanks, EndTheJobWhenTheyStaySo) {
  for (int victim = 0; victim < 3; ++victim) {
    fs::remove(folder_ / "err");
    begin(3, "exec sleep 60");
    ::kill(pid_of(victim), SIGSTOP);
    EXPECT_EQ(wait(), kExitPeerFailed);
    EXPECT_TRUE(contains(err(), "rank " + std::to_string(victim) + " of 3 (pid ")) << err();
    EXPECT_TRUE(contains(err(), "was stopped by a signal for")) << err();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_NE(::kill(pid_of(rank), 0), 0);
      fs::remove(folder_ / ("pid." + std::to_string(rank)));
    }
  }
}

TEST_F(StoppedRanks, OnesThatTheOthersBlameAreNamedInsteadOfThese) {
  // Ranks 0 and 1 say, as those of Tutti do, that they stopped because of rank 2.
  options_.stop_limit = std::chrono::minutes(1);
  begin(3,
        "[ $TUTTI_RANK = 2 ] && exec sleep 60; "
        "printf '\\036tutti: ended with 75 because of rank 2\\n' > /proc/self/fd/$TUTTI_EXIT_NOTES; exit 75");
  EXPECT_EQ(wait(), kExitPeerFailed);
  EXPECT_EQ(err(), "rank 2 of 3 did not answer, or did not come: the others gave up waiting for it\n");
}

TEST_F(StoppedRanks, AQuestionIsAnsweredAndTheJobGoesOn) {
  options_.status = [] { return std::string("all is well"); };
  begin(2, "while [ ! -e over ]; do sleep 0.05; done");
  pid_of(1);
  ::kill(pid_, SIGQUIT);
  EXPECT_TRUE(err_has("all is well\n")) << err();
  ::close(::open((folder_ / "over").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(wait(), 0);
}

}  // namespace
}  // namespace tutti
