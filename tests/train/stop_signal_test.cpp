#include "train/stop_signal.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace tutti {
namespace {

bool is_blocked(int number) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, number) == 1;
}

TEST(StopSignal, IsNotedWithoutInterruptingThreadsThatCompute) {
  EXPECT_EQ(stop_signal(), 0);
  note_stop_signals();
  EXPECT_EQ(stop_signal(), 0);
  for (const int number : {SIGTERM, SIGUSR1}) {
    EXPECT_TRUE(is_blocked(number));
    std::thread([number] { EXPECT_TRUE(is_blocked(number)); }).join();
  }
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  while (stop_signal() == 0) std::this_thread::yield();  // a thread of a library may take it
  EXPECT_EQ(stop_signal(), SIGUSR1);
  EXPECT_EQ(stop_signal(), SIGUSR1) << "asked once more";
}

}  // namespace
}  // namespace tutti
