#include "train/console.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace tutti {
namespace {

/// What a console writes.
template <typename Speak>
std::string output_of(Verbosity verbosity, Speak speak) {
  testing::internal::CaptureStdout();
  {
    Console console(/*speaks=*/true, verbosity);
    speak(console);
  }
  return testing::internal::GetCapturedStdout();
}

void say_everything(Console& console) {
  console.line("line");
  console.detail("detail");
  console.progress("progress");  // on terminals only
  console.note("beware");
  console.result("result");
}

TEST(Console, SaysAsMuchAsIsAskedFor) {
  EXPECT_EQ(output_of(Verbosity::quiet, say_everything), "note: beware\nresult\n");
  EXPECT_EQ(output_of(Verbosity::usual, say_everything), "line\nnote: beware\nresult\n");
  EXPECT_EQ(output_of(Verbosity::verbose, say_everything), "line\ndetail\nnote: beware\nresult\n");
}

TEST(Console, GoesOnWhereNobodyReadsAndSaysSoOnce) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  testing::internal::CaptureStderr();
  {
    Console console(/*speaks=*/true, Verbosity::verbose);
    say_everything(console);
  }
  const std::string errors = testing::internal::GetCapturedStderr();
  std::signal(SIGPIPE, handler);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  EXPECT_EQ(errors,
            "tutti: this output cannot be written (Broken pipe): training goes on without it. The run's folder has its "
            "records\n");
}

TEST(Console, ShowsDurationsAsClocksDo) {
  EXPECT_EQ(readable_duration(7.4), "0:07");
  EXPECT_EQ(readable_duration(61), "1:01");
  EXPECT_EQ(readable_duration(3723), "1:02:03");
}

}  // namespace
}  // namespace tutti
