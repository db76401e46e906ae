#include "train/stop_signal.h"

#include <csignal>

namespace tutti {
namespace {

volatile std::sig_atomic_t noted_signal = 0;

}  // namespace

void note_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { noted_signal = number; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);
}

int stop_signal() { return noted_signal; }

}  // namespace tutti
