// Children and signals.
#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/fd.h"
#include "base/proc_files.h"
#include "base/signals.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct Said {
  int exit_code = 0;
  std::string text;
};

/// What a child says to its stdout and stderr until it ends.
Said run(ChildStart start) {
  Pipe pipe = make_pipe();
  start.stdout_fd = start.stderr_fd = pipe.write_end.get();
  const pid_t child = start_child(start);
  pipe.write_end.close();
  Said said;
  std::array<char, 1000> buffer;
  for (ssize_t got; (got = ::read(pipe.read_end.get(), buffer.data(), buffer.size())) > 0;)
    said.text.append(buffer.data(), static_cast<std::size_t>(got));
  said.exit_code = exit_code_of(wait_for_child(child));
  return said;
}

ChildStart shell(const std::string& script) {
  ChildStart start;
  start.words = {"sh", "-c", script};
  return start;
}

TEST(Child, SaysAndExitsAsItLikes) {
  const Said said = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(said.text, "out\nerr\n");
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_EQ(run(shell("kill -TERM $$")).exit_code, 128 + SIGTERM);
}

TEST(Child, HasTheEnvironmentAndStdinThatItIsGiven) {
  ChildStart start = shell("echo $A; cat");
  start.environment = std::vector<std::string>{"A=b"};
  const Fd nothing = open_null();
  start.stdin_fd = nothing.get();
  EXPECT_EQ(run(start).text, "b\n");
}

TEST(Child, LeadsAGroupIfAsked) {
  const auto is_leader = [&](bool asked) {
    ChildStart start = shell("exec sleep 60");
    start.leads_group = asked;
    const pid_t child = start_child(start);
    const auto stat = process_stat(child);
    ::kill(child, SIGKILL);
    wait_for_child(child);
    return stat && stat->parent == ::getpid() && stat->group == child;
  };
  EXPECT_TRUE(is_leader(true));
  EXPECT_FALSE(is_leader(false));
}

TEST(Child, WhoseProgramIsNotThereSaysSo) {
  ChildStart start;
  start.words = {"/no/such/program"};
  const Said said = run(start);
  EXPECT_EQ(said.exit_code, kCannotExecute);
  EXPECT_EQ(said.text, "cannot execute /no/such/program: No such file or directory\n");
  const Pipe failures = make_pipe();
  start.failure_fd = failures.write_end.get();
  EXPECT_EQ(run(start).text, "");
  int reason = 0;
  ASSERT_EQ(::read(failures.read_end.get(), &reason, sizeof reason), static_cast<ssize_t>(sizeof reason));
  EXPECT_EQ(reason, ENOENT);
}

TEST(Child, HasSignalsAsByDefaultButForAHangupThatIsIgnored) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  const SignalActions pipe_ignored({SIGPIPE}, ignore);
  EXPECT_EQ(run(shell("kill -PIPE $$; echo here")).exit_code, 128 + SIGPIPE);
  EXPECT_EQ(run(shell("kill -HUP $$; echo here")).exit_code, 128 + SIGHUP);
  struct sigaction before = {};
  ::sigaction(SIGHUP, &ignore, &before);
  EXPECT_EQ(run(shell("kill -HUP $$; echo here")).text, "here\n");
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(Child, GoesOnAsACopyWithItsOwnEnvironmentAndNothingThatExecWouldClose) {
  const Pipe pipe = make_pipe();  // closes on exec
  const int open_fd = ::dup(STDIN_FILENO);
  const int in_parent = 5;
  ChildStart start;
  start.environment = std::vector<std::string>{"A=b"};
  start.run = [&] {
    const bool is_closed = ::fcntl(pipe.read_end.get(), F_GETFD) < 0;
    const bool is_open = ::fcntl(open_fd, F_GETFD) >= 0;
    std::printf("%s %d %d %d", std::getenv("A"), std::getenv("PATH") == nullptr, is_closed, is_open);  // exit writes it
    return in_parent;
  };
  std::printf("of the parent");  // and is not said again
  const Said said = run(start);
  ::close(open_fd);
  EXPECT_EQ(said.text, "b 1 1 1");
  EXPECT_EQ(said.exit_code, 5);
}

TEST(Program, IsInPathOrNot) {
  EXPECT_TRUE(is_in_path("sh"));
  EXPECT_FALSE(is_in_path("no-such-program"));
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program"), "");
}

TEST(StopSignals, AreNotedFromTheFirstOn) {
  StopSignals signals;
  EXPECT_EQ(signals.first(), 0);
  ::raise(SIGTERM);
  ::raise(SIGINT);
  EXPECT_EQ(signals.first(), SIGTERM);
  EXPECT_EQ(signals.count(), 2);
}

TEST(StopSignals, WakeUpWhoeverWaitsForAChild) {
  StopSignals signals;
  const pid_t child = start_child(shell("exit 0"));
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(signals.first(), 0);  // that this looks at the notes must not make the wait miss the child
  signals.wait(60'000);
  EXPECT_EQ(signals.count(), 0);
  wait_for_child(child);
}

TEST(StopSignals, ComeToTheYoungestOfSeveral) {
  StopSignals outer;
  {
    StopSignals inner;
    ::raise(SIGTERM);
    EXPECT_EQ(inner.first(), SIGTERM);
    EXPECT_EQ(outer.first(), 0);
  }
  ::raise(SIGINT);
  EXPECT_EQ(outer.first(), SIGINT);
}

TEST(StopSignals, LeaveAHangupIgnoredThatNohupHasIgnored) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, &before);
  {
    StopSignals signals;
    ::raise(SIGHUP);
    EXPECT_EQ(signals.first(), 0);
  }
  ::sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace tutti
