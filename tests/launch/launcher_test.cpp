#include "launch/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "support/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Lines = std::vector<std::string>;

constexpr milliseconds kLong{60'000};  // so long that a test which waits for it fails

/// The ranks run this shell script.
LaunchOptions script(int ranks, const std::string& text) {
  LaunchOptions options;
  options.ranks = ranks;
  options.command = {"sh", "-c", text};
  return options;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Lines sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Gone, or dead and only not yet collected by whoever adopted it.
bool is_gone(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  const auto state = text.rfind(") ");
  return state != std::string::npos && (text[state + 2] == 'Z' || text[state + 2] == 'X');
}

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

/// launch_ranks() in a process of its own, its output in files.
class Launcher : public testing::Test {
 protected:
  Launcher() {
    char name[] = "/tmp/launcher_test.XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Launcher() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    remove_tree(folder_);
  }

  void begin(const LaunchOptions& options, const std::function<void()>& prepare = {}) {
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ > 0) return;
    const int out = ::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int err = ::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::close(out);
    ::close(err);
    if (prepare) prepare();
    int code = 250;
    try {
      code = launch_ranks(options);
    } catch (const Error& error) {
      const std::string text = std::string("threw: ") + error.what() + "\n";
      [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
    }
    // The last sign that nothing is left: no child, dead or alive.
    if (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) code = 251;
    ::_exit(code);
  }

  /// The exit code; -signal when the launcher itself was killed.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const LaunchOptions& options, const std::function<void()>& prepare = {}) {
    begin(options, prepare);
    return wait();
  }

  std::string out() const { return fs::exists(folder_ / "out") ? read_file(folder_ / "out") : ""; }
  std::string err() const { return fs::exists(folder_ / "err") ? read_file(folder_ / "err") : ""; }
  bool out_has(const std::string& part, std::size_t times = 1) const {
    return eventually([&] { return count(out(), part) >= times; });
  }

  fs::path folder_;
  pid_t pid_ = -1;
};

TEST_F(Launcher, ReturnsZeroWhenAllSucceed) {
  EXPECT_EQ(run(script(3, "exit 0")), 0);
  EXPECT_EQ(out() + err(), "");
}

TEST_F(Launcher, TellsEachRankItsPlace) {
  LaunchOptions options =
      script(3,
             "echo $TUTTI_RANK/$TUTTI_SIZE $TUTTI_LOCAL_RANK/$TUTTI_LOCAL_SIZE $TUTTI_NODE/$TUTTI_NODES "
             "$TUTTI_THREADS $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS $INHERITED");
  options.threads = 7;
  EXPECT_EQ(run(options,
                [] {
                  ::setenv("TUTTI_RANK", "5", 1);  // to be replaced
                  ::setenv("OMP_NUM_THREADS", "9", 1);
                  ::setenv("INHERITED", "yes", 1);
                }),
            0);
  EXPECT_EQ(sorted(lines_of(out())),
            (Lines{"0/3 0/3 0/1 7 7 7 7 yes", "[rank 1] 1/3 1/3 0/1 7 7 7 7 yes", "[rank 2] 2/3 2/3 0/1 7 7 7 7 yes"}));
}

TEST_F(Launcher, GivesAllRanksTheSameJobAndEachLaunchAnother) {
  EXPECT_EQ(run(script(3, "echo job:$TUTTI_JOB")), 0);
  EXPECT_EQ(run(script(3, "echo job:$TUTTI_JOB")), 0);
  std::set<std::string> jobs;
  for (const std::string& line : lines_of(out())) jobs.insert(line.substr(line.find("job:")));
  EXPECT_EQ(lines_of(out()).size(), 6u);
  EXPECT_EQ(jobs.size(), 2u);
  for (const std::string& job : jobs) {
    EXPECT_EQ(job.find_first_not_of("0123456789abcdef-", 4), std::string::npos) << job;
    EXPECT_GT(job.size(), 12u);
  }
}

TEST_F(Launcher, KeepsTheArgumentsAsTheyAre) {
  LaunchOptions options;
  options.command = {"printf", "%s|", "a b", "", "\"$HOME\"", "*"};
  EXPECT_EQ(run(options), 0);
  EXPECT_EQ(out(), "a b||\"$HOME\"|*|");
}

TEST_F(Launcher, KeepsOutputAndErrorsApartAndPrefixesAllButRankZero) {
  EXPECT_EQ(run(script(3, "echo out $TUTTI_RANK; echo err $TUTTI_RANK >&2")), 0);
  EXPECT_EQ(sorted(lines_of(out())), (Lines{"[rank 1] out 1", "[rank 2] out 2", "out 0"}));
  EXPECT_EQ(sorted(lines_of(err())), (Lines{"[rank 1] err 1", "[rank 2] err 2", "err 0"}));
}

TEST_F(Launcher, PrintsWholeLinesOnly) {
  // Pieces of lines, in turns: rank 2 writes while rank 1 is in the middle of its line.
  const std::string in = folder_.string();
  EXPECT_EQ(run(script(3, "cd " + in +
                              "; case $TUTTI_RANK in "
                              "1) printf 'first '; : > begun; while [ ! -e done2 ]; do sleep 0.01; done; echo half;; "
                              "2) while [ ! -e begun ]; do sleep 0.01; done; printf 'a\\n\\nb\\r'; : > done2;; esac")),
            0);
  const Lines lines = lines_of(out());
  EXPECT_EQ(sorted(lines), (Lines{"[rank 1] first half", "[rank 2] ", "[rank 2] a", "[rank 2] b\r"}));
}

TEST_F(Launcher, PrintsALastLineWithoutAnEnd) {
  EXPECT_EQ(run(script(2, "[ $TUTTI_RANK = 0 ] || printf 'one\\ntwo'")), 0);
  EXPECT_EQ(out(), "[rank 1] one\n[rank 1] two\n");
}

TEST_F(Launcher, PrintsVeryLongLinesWhole) {
  EXPECT_EQ(run(script(3, "[ $TUTTI_RANK = 0 ] || { head -c 3000000 /dev/zero | tr '\\0' $TUTTI_RANK; echo; }")), 0);
  EXPECT_EQ(sorted(lines_of(out())),
            (Lines{"[rank 1] " + std::string(3'000'000, '1'), "[rank 2] " + std::string(3'000'000, '2')}));
}

TEST_F(Launcher, LosesNoLineOfManyRanks) {
  EXPECT_EQ(run(script(8, "i=0; while [ $i -lt 2000 ]; do echo $TUTTI_RANK:$i; i=$((i+1)); done")), 0);
  const Lines lines = lines_of(out());
  EXPECT_EQ(lines.size(), 16'000u);
  std::vector<int> next(8, 0);
  for (const std::string& line : lines) {
    int rank = 0;
    int prefix = 0;
    int number = -1;
    if (line[0] == '[') {
      ASSERT_EQ(std::sscanf(line.c_str(), "[rank %d] %d:%d", &prefix, &rank, &number), 3) << line;
      ASSERT_EQ(prefix, rank);
    } else {
      ASSERT_EQ(std::sscanf(line.c_str(), "%d:%d", &rank, &number), 2) << line;
    }
    ASSERT_EQ(number, next[static_cast<std::size_t>(rank)]++);
  }
}

TEST_F(Launcher, OnlyRankZeroReadsInput) {
  std::ofstream(folder_ / "in") << "typed\n";
  EXPECT_EQ(
      run(script(3, "echo \"got $(cat)\""), [&] { ::dup2(::open((folder_ / "in").c_str(), O_RDONLY), STDIN_FILENO); }),
      0);
  EXPECT_EQ(sorted(lines_of(out())), (Lines{"[rank 1] got ", "[rank 2] got ", "got typed"}));
}

TEST_F(Launcher, WorksWithoutStandardDescriptors) {
  EXPECT_EQ(run(script(3, "echo $TUTTI_RANK; echo $TUTTI_RANK >> " + (folder_ / "ran").string()),
                [] {
                  ::close(STDIN_FILENO);
                  ::close(STDOUT_FILENO);
                }),
            0);
  EXPECT_EQ(sorted(lines_of(read_file(folder_ / "ran"))), (Lines{"0", "1", "2"}));
}

TEST_F(Launcher, AProcessLeftBehindWithTheOutputDoesNotHoldItUp) {
  EXPECT_EQ(run(script(2, "sleep 20 & echo $! >> " + (folder_ / "sleepers").string() + "; echo done; exit 0")), 0);
  EXPECT_EQ(sorted(lines_of(out())), (Lines{"[rank 1] done", "done"}));
  for (const std::string& pid : lines_of(read_file(folder_ / "sleepers"))) ::kill(std::stoi(pid), SIGKILL);
}

TEST_F(Launcher, NamesTheRankThatFailed) {
  EXPECT_EQ(run(script(4, "[ $TUTTI_RANK != 2 ] || exit 3")), 3);
  EXPECT_EQ(err(), "rank 2 of 4 failed: exit code 3\n");
}

TEST_F(Launcher, NamesTheSignalThatKilledARank) {
  EXPECT_EQ(run(script(4, "[ $TUTTI_RANK != 2 ] || kill -9 $$")), 137);
  EXPECT_EQ(err(), "rank 2 of 4 was killed by signal 9 (Killed)\n");
}

TEST_F(Launcher, ARankThatStoppedBecauseOfAPeerIsNotTheCauseEvenIfItIsFirst) {
  const std::string in = folder_.string();
  EXPECT_EQ(run(script(3, "cd " + in +
                              "; case $TUTTI_RANK in 0) : > stopped; exit 75;; "
                              "1) while [ ! -e stopped ]; do sleep 0.01; done; sleep 0.1; exit 4;; "
                              "2) while [ ! -e stopped ]; do sleep 0.01; done; sleep 0.3; exit 5;; esac")),
            4);
  EXPECT_EQ(err(), "rank 1 of 3 failed: exit code 4\n");
}

TEST_F(Launcher, TheFirstFailureIsTheCause) {
  const std::string in = folder_.string();
  EXPECT_EQ(run(script(3, "cd " + in +
                              "; case $TUTTI_RANK in 2) : > failed; exit 6;; "
                              "*) while [ ! -e failed ]; do sleep 0.01; done; sleep 0.1; exit 1;; esac")),
            6);
  EXPECT_EQ(err(), "rank 2 of 3 failed: exit code 6\n");
}

TEST_F(Launcher, TheFirstFailureIsTheCauseAlsoWhenItComesToKnowThemTogether) {
  const std::string in = folder_.string();
  begin(script(3, "cd " + in +
                      "; echo $$ > $TUTTI_RANK.new; mv $TUTTI_RANK.new $TUTTI_RANK; case $TUTTI_RANK in "
                      "2) while [ ! -e asleep ]; do sleep 0.01; done; : > failed; exit 6;; "
                      "*) while [ ! -e failed ]; do sleep 0.01; done; sleep 0.1; exit 1;; esac"));
  const auto rank_is_gone = [&](const char* rank) {
    return eventually([&] { return fs::exists(folder_ / rank) && is_gone(std::stoi(read_file(folder_ / rank))); });
  };
  ASSERT_TRUE(eventually([&] { return fs::exists(folder_ / "0") && fs::exists(folder_ / "2"); }));
  ::kill(pid_, SIGSTOP);
  std::ofstream(folder_ / "asleep") << "";
  EXPECT_TRUE(rank_is_gone("2") && rank_is_gone("0") && rank_is_gone("1"));
  ::kill(pid_, SIGCONT);
  EXPECT_EQ(wait(), 6);
}

TEST_F(Launcher, WhenAllSayItWasAPeerTheFirstIsNamed) {
  EXPECT_EQ(run(script(2, "[ $TUTTI_RANK = 0 ] || exit 75; exit 0")), 75);
  EXPECT_EQ(err(), "rank 1 of 2 failed: exit code 75 (stopped because a peer failed)\n");
}

TEST_F(Launcher, ARankThatItStoppedItselfIsNotTheCause) {
  LaunchOptions options =
      script(3,
             "case $TUTTI_RANK in 1) exit 75;; 0) trap 'exit 9' TERM; while :; do sleep 0.02; done;; "
             "*) exec sleep 60;; esac");
  options.finish_grace = milliseconds(200);
  EXPECT_EQ(run(options), 75);
  EXPECT_TRUE(contains(err(), "rank 1 of 3")) << err();
}

TEST_F(Launcher, TheOthersMayFinishByThemselves) {
  const auto begun = std::chrono::steady_clock::now();
  LaunchOptions options = script(2, "[ $TUTTI_RANK = 0 ] || exit 3; sleep 0.3; echo last words");
  options.finish_grace = kLong;
  EXPECT_EQ(run(options), 3);
  EXPECT_EQ(out(), "last words\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLong / 2);
}

TEST_F(Launcher, TheOthersAreToldToStopAfterAWhile) {
  LaunchOptions options =
      script(2, "[ $TUTTI_RANK = 0 ] || exit 3; trap 'echo told; exit 0' TERM; while :; do sleep 0.02; done");
  options.finish_grace = milliseconds(200);
  options.term_grace = kLong;
  EXPECT_EQ(run(options), 3);
  EXPECT_EQ(out(), "told\n");
  EXPECT_EQ(err(), "rank 1 of 2 failed: exit code 3\n");
}

TEST_F(Launcher, ARankThatDoesNotListenIsKilled) {
  LaunchOptions options = script(3, "trap '' TERM; echo $$ > " + (folder_ / "pid").string() +
                                        ".$TUTTI_RANK; [ $TUTTI_RANK != 1 ] || { sleep 0.3; exit 3; }; exec sleep 60");
  options.finish_grace = milliseconds(100);
  options.term_grace = milliseconds(100);
  EXPECT_EQ(run(options), 3);
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_TRUE(is_gone(std::stoi(read_file(folder_ / ("pid." + std::string(rank)))))) << rank;
  }
  EXPECT_EQ(err(), "rank 1 of 3 failed: exit code 3\n");
}

TEST_F(Launcher, ForwardsSignals) {
  // Each rank notes what it gets, and stops at SIGTERM.
  begin(script(3,
               "for s in INT HUP USR1 USR2; do trap \"echo got-$s\" $s; done; trap 'echo got-TERM; exit 0' TERM; "
               "echo ready; while :; do sleep 0.02; done"));
  ASSERT_TRUE(out_has("ready", 3));
  const std::pair<int, const char*> signals[] = {
      {SIGUSR1, "got-USR1"}, {SIGUSR2, "got-USR2"}, {SIGHUP, "got-HUP"}, {SIGINT, "got-INT"}, {SIGTERM, "got-TERM"}};
  for (const auto& [number, answer] : signals) {
    ::kill(pid_, number);
    EXPECT_TRUE(out_has(answer, 3)) << answer;
  }
  EXPECT_EQ(wait(), 0);
  for (const auto& [number, answer] : signals) EXPECT_EQ(count(out(), answer), 3u) << answer;
}

TEST_F(Launcher, ASecondInterruptKills) {
  begin(script(2, "trap 'echo got-INT' INT; echo ready; while :; do sleep 0.02; done"));
  ASSERT_TRUE(out_has("ready", 2));
  ::kill(pid_, SIGINT);
  ::kill(pid_, SIGINT);  // the same again, as timeout(1) does: not the second
  ASSERT_TRUE(out_has("got-INT", 2));
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0);
  ::kill(pid_, SIGINT);
  EXPECT_EQ(wait(), 137);
}

TEST_F(Launcher, SignalsFromBeforeAreStandardInTheRanksExceptForNohup) {
  EXPECT_EQ(run(script(2, "kill -HUP $$; kill -USR1 $$; echo not reached"),
                [] {
                  std::signal(SIGHUP, SIG_IGN);
                  std::signal(SIGUSR1, SIG_IGN);
                  sigset_t blocked;
                  sigfillset(&blocked);
                  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
                }),
            128 + SIGUSR1);
  EXPECT_EQ(out(), "");
}

TEST_F(Launcher, ItsEndIsTheEndOfTheRanks) {
  begin(script(4, "echo pid:$$:; exec sleep 60"));
  ASSERT_TRUE(out_has("pid:", 4));
  std::vector<pid_t> pids;
  for (const std::string& line : lines_of(out())) pids.push_back(std::stoi(line.substr(line.find("pid:") + 4)));
  ::kill(pid_, SIGKILL);
  EXPECT_EQ(wait(), -SIGKILL);
  for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_gone(pid); })) << pid;
}

TEST_F(Launcher, AProgramThatDoesNotExistIsNamed) {
  LaunchOptions options;
  options.ranks = 3;
  options.command = {"/no/such/program", "x"};
  EXPECT_EQ(run(options), 127);
  EXPECT_EQ(err(), "cannot execute /no/such/program: No such file or directory\n");
}

TEST_F(Launcher, AProgramThatExitsWith127IsNotMistakenForIt) {
  EXPECT_EQ(run(script(1, "exit 127")), 127);
  EXPECT_EQ(err(), "rank 0 of 1 failed: exit code 127\n");
}

TEST_F(Launcher, WhenOneCannotBeStartedNoneIsLeft) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(run(script(30, "exec sleep 60"),
                [] {
                  const rlimit limit{40, 40};  // descriptors: enough for some of the ranks
                  ::setrlimit(RLIMIT_NOFILE, &limit);
                }),
            250);
  EXPECT_TRUE(contains(err(), "threw: cannot start rank 1")) << err();  // 10 to 19
  EXPECT_TRUE(contains(err(), "of 30: ")) << err();
  EXPECT_TRUE(contains(err(), "Too many open files")) << err();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST_F(Launcher, RefusesOptionsThatCannotWork) {
  EXPECT_THROW(launch_ranks(script(0, "true")), UsageError);
  LaunchOptions options = script(1, "true");
  options.threads = 0;
  EXPECT_THROW(launch_ranks(options), UsageError);
  options = script(1, "true");
  options.command.clear();
  EXPECT_THROW(launch_ranks(options), UsageError);
}

TEST_F(Launcher, StartsSixtyFourRanks) {
  EXPECT_EQ(run(script(64, "echo $TUTTI_RANK; exit 0")), 0);
  EXPECT_EQ(lines_of(out()).size(), 64u);
}

TEST_F(Launcher, StopsSixtyFourRanks) {
  begin(script(64, "echo ready; exec sleep 60"));
  ASSERT_TRUE(out_has("ready", 64));
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(wait(), 128 + SIGTERM);
  EXPECT_TRUE(contains(err(), "was killed by signal 15 (Terminated)")) << err();
  EXPECT_EQ(lines_of(err()).size(), 1u);
}

TEST_F(Launcher, AReaderThatStopsReadingDoesNotStopSignals) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  begin(
      script(3, ": > " + (folder_ / "began").string() + ".$TUTTI_RANK; [ $TUTTI_RANK = 0 ] && exec sleep 60; exec yes"),
      [&] { ::dup2(ends[1], STDOUT_FILENO); });
  ::close(ends[1]);
  EXPECT_TRUE(eventually([&] { return fs::exists(folder_ / "began.1") && fs::exists(folder_ / "began.2"); }));
  std::this_thread::sleep_for(milliseconds(200));  // until every buffer on the way is full
  ::kill(pid_, SIGTERM);
  std::this_thread::sleep_for(milliseconds(200));
  ::kill(pid_, SIGTERM);  // the first has stopped the ranks, this stops the wait for the reader
  EXPECT_EQ(wait(), 128 + SIGTERM);
  ::close(ends[0]);
}

TEST_F(Launcher, AReaderThatWentAwayDoesNotStopTheRanks) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  begin(script(2, "[ $TUTTI_RANK = 0 ] || { head -c 1000000 /dev/zero | tr '\\0' '\\n'; : > " +
                      (folder_ / "done").string() + "; }; exit 0"),
        [&] {
          ::close(ends[0]);
          ::dup2(ends[1], STDOUT_FILENO);
          ::close(ends[1]);
        });
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(wait(), 0);
  EXPECT_TRUE(fs::exists(folder_ / "done"));
}

TEST_F(Launcher, CtrlCAtATerminalReachesEachRankOnceAndLinesReplaceTheProgressLine) {
  int terminal = -1;
  pid_ = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid_, 0);
  if (pid_ == 0) {
    LaunchOptions options = script(3,
                                   "trap 'echo got-INT' INT; trap 'echo got-USR1; exit 0' USR1; echo ready; "
                                   "while :; do sleep 0.02; done");
    ::_exit(launch_ranks(options));
  }
  std::string text;
  const auto shows = [&](const std::string& part, std::size_t times) {
    return eventually([&] {
      pollfd entry{terminal, POLLIN, 0};
      char buffer[4096];
      while (::poll(&entry, 1, 0) > 0) {
        const ssize_t got = ::read(terminal, buffer, sizeof buffer);
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
      }
      return count(text, part) >= times;
    });
  };
  ASSERT_TRUE(shows("ready", 3)) << text;
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  EXPECT_TRUE(shows("got-INT", 3)) << text;
  ::kill(pid_, SIGUSR1);
  EXPECT_TRUE(shows("got-USR1", 3)) << text;
  EXPECT_EQ(wait(), 0);
  EXPECT_EQ(count(text, "got-INT"), 3u) << text;
  EXPECT_TRUE(contains(text, "\r\x1b[K[rank 1] ready")) << text;
  EXPECT_TRUE(contains(text, "\r\x1b[K[rank 2] ready")) << text;
  ::close(terminal);
}

TEST_F(Launcher, LeavesTheCallersSignalsAsTheyWere) {
  struct sigaction before = {};
  struct sigaction after = {};
  ::sigaction(SIGTERM, nullptr, &before);
  EXPECT_EQ(launch_ranks(script(2, "exit 0")), 0);
  EXPECT_EQ(launch_ranks(script(2, "exit 0")), 0);  // and can be called again
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

/// A script in the place of mpirun; its `note 75` is what a rank writes that ends with 75.
LaunchOptions launcher_script(const std::string& text) {
  LaunchOptions options = script(1, "note() { printf '\\036tutti: ended with %d\\n' $1 >&2; }; " + text);
  options.is_launcher = true;
  return options;
}

TEST_F(Launcher, EndsALauncherThatDoesNotEndAfterItsRanksAndWhatItHasStarted) {
  LaunchOptions options =
      launcher_script("trap '' TERM; sleep 60 & echo pid:$!:; echo 'rank 1 misses rank 2' >&2; note 75; exec sleep 60");
  options.finish_grace = milliseconds(50);
  EXPECT_EQ(run(options), 75);
  EXPECT_EQ(err(), "rank 1 misses rank 2\n");
  EXPECT_TRUE(is_gone(std::stoi(out().substr(4)))) << out();
}

TEST_F(Launcher, ALauncherThatWouldEndWhereNobodyReadsGoesOn) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  begin(launcher_script("echo a; echo b; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; echo c || exit 3; done; note 0"),
        [&] {
          ::close(ends[0]);
          ::dup2(ends[1], STDOUT_FILENO);
          ::close(ends[1]);
        });
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(wait(), 0);
  EXPECT_EQ(err(), "tutti: nobody reads this output any more: the ranks go on without it\n");
}

TEST_F(Launcher, GivesTheSignalThatKilledARankAndNotTheCodeOfThoseThatALauncherThenTellsToEnd) {
  LaunchOptions options = launcher_script("note 85; exit 137");
  options.quiet_code = 85;
  EXPECT_EQ(run(options), 137);
  options = launcher_script("note 85; exit 1");
  options.quiet_code = 85;
  EXPECT_EQ(run(options), 85);
}

TEST_F(Launcher, SaysWhichSignalEndedARankWhereALauncherDoesNot) {
  EXPECT_EQ(run(launcher_script("exit 143")), 143);
  EXPECT_EQ(err(), "sh ended with exit code 143: a rank was ended by signal 15 (Terminated)\n");
}

TEST_F(Launcher, SaysWhichRankStoppedOnPurposeWhereOthersHadToFollow) {
  LaunchOptions options = script(2, "test $TUTTI_RANK = 1 && exit 85; exit 75");
  options.quiet_code = 85;
  EXPECT_EQ(run(options), 85);
  EXPECT_EQ(err(), "rank 1 of 2 stopped at a signal that it alone got, and the others could not go on\n");
}

TEST_F(Launcher, TakesALauncherThatEndsWellForAFailureUnlessARankSaysThatItIsDone) {
  LaunchOptions options = launcher_script("true");
  options.launched = 2;
  EXPECT_EQ(run(options), 1);
  EXPECT_NE(err().find("none of its 2 ranks said that it was done"), std::string::npos) << err();
  options = launcher_script("note 0; note 0");
  options.launched = 2;
  EXPECT_EQ(run(options), 0);
}

TEST_F(Launcher, GivesTheExitCodeOfTheRankThatFailedFirstByItself) {
  EXPECT_EQ(run(launcher_script("note 75; printf 'half a line'; printf 'and ' >&2; note 3; note 4; exit 1")), 3);
  EXPECT_EQ(out() + err(), "half a lineand \n");
  EXPECT_EQ(run(launcher_script("note 75; exit 137")), 137) << "a killed rank leaves no note";
  EXPECT_EQ(run(launcher_script("echo fine >&2")), 0);
}

TEST_F(Launcher, PassesTheFirstTermOnAsAUserSignalSoThatALaunchersRanksCanSave) {
  begin(launcher_script("trap 'note 85; exit 1' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(out_has("ready"));
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(wait(), 85);
  EXPECT_EQ(err(), "");
}

TEST_F(Launcher, ALauncherThatIsStoppedWithoutSavingEndsAsIfByTheSignal) {
  begin(launcher_script("trap 'exit 138' USR1; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(out_has("ready"));
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(wait(), 128 + SIGTERM);
}

TEST_F(Launcher, ALauncherThatIsInterruptedEndsAsIfByTheSignalWhateverItsOwnCode) {
  begin(launcher_script("trap 'exit 1' INT; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(out_has("ready"));
  ::kill(pid_, SIGINT);
  EXPECT_EQ(wait(), 128 + SIGINT);
  EXPECT_EQ(err(), "stopped by signal 2 (Interrupt)\n");
}

TEST_F(Launcher, ASecondTermReachesALauncherAsItIs) {
  begin(
      launcher_script("trap 'echo asked' USR1; trap 'note 9; exit 9' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(out_has("ready"));
  ::kill(pid_, SIGTERM);
  ASSERT_TRUE(out_has("asked"));
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(wait(), 9);
}

TEST_F(Launcher, ASignalToTheWholeGroupReachesALauncherOnlyThroughUs) {
  begin(launcher_script("trap 'note 85; exit 1' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done"),
        [] { ::setpgid(0, 0); });
  ASSERT_TRUE(out_has("ready"));
  ::kill(-pid_, SIGTERM);
  EXPECT_EQ(wait(), 85);
}

}  // namespace
}  // namespace tutti
