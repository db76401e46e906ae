#include "base/crash_report.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tutti {
namespace {

/// The sanitizers would look at what it points to first, and crash there.
__attribute__((noinline, no_sanitize("undefined"))) void call(void (*volatile function)()) { function(); }

TEST(CrashReport, SaysWhereTheProcessWasAndLetsTheSignalEndIt) {
  EXPECT_EXIT(
      {
        report_crashes();
        ::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "tutti: process [0-9]+ crashed, signal 11 at address .*\n.*base_tests");
}

TEST(CrashReport, NamesTheCallerOfANullFunctionPointer) {
  EXPECT_EXIT(
      {
        report_crashes();
        call(nullptr);
      },
      testing::KilledBySignal(SIGSEGV), "a null function pointer, called from\n.*base_tests");
}

}  // namespace
}  // namespace tutti
