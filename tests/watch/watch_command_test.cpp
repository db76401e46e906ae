// `tutti watch` as people start and end it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "support/command.h"
#include "watch/http_client.h"
#include "watch/sample_run.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

const std::string kTool = TUTTI_WATCH_TOOL;

TEST(WatchCommand, PrintsItsAddressAndEndsWithCtrlC) {
  const SampleRuns runs("tutti-watch-command-test");
  runs.begin("first");
  // Its own process in the background of the shell, which says its number first.
  FILE* const shell = ::popen(
      ("sh -c 'echo $$; exec " + kTool + " watch frist --runs " + runs.folder().string() + " 2>&1'").c_str(), "r");
  ASSERT_NE(shell, nullptr);
  std::array<char, 1024> line{};
  const auto next = [&] {
    return std::string(std::fgets(line.data(), line.size(), shell) != nullptr ? line.data() : "");
  };
  const pid_t pid = std::stoi(next());
  std::string said = next();
  if (said.find("no web server") != std::string::npos) {
    ::pclose(shell);
    GTEST_SKIP() << said;
  }
  EXPECT_THAT(said, HasSubstr("no run 'frist'"));
  EXPECT_THAT(said, HasSubstr("did you mean 'first'?. It is shown as soon as it starts"));
  const std::string url = next();
  int port = 0, end = 0;
  ASSERT_EQ(std::sscanf(url.c_str(), "http://127.0.0.1:%d%n", &port, &end), 1) << url;
  EXPECT_EQ(get(port, url.substr(static_cast<std::size_t>(end), url.size() - static_cast<std::size_t>(end) - 1)).status,
            303);
  ::kill(pid, SIGINT);
  while (!next().empty()) {
  }
  const int status = ::pclose(shell);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(WatchCommand, RefusesWhatCannotBe) {
  const auto refused = [](const std::string& arguments, int code, const char* part) {
    const CommandResult result = run_command(kTool + " watch --runs /nowhere " + arguments);
    EXPECT_EQ(result.exit_code, code) << result.output;
    EXPECT_THAT(result.output, HasSubstr(part));
  };
  refused("--port 70000", 2, "70000");
  refused("--token short", 2, "shorter than 8");
  refused("--listen 'no address'", 2, "is no address of this machine");
}

}  // namespace
}  // namespace tutti
