#include "launch/restarts.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "base/process.h"

namespace tutti {

int launch_with_restarts(const LaunchOptions& launch, int max_restarts, const std::function<std::string()>& goes_on) {
  for (int restart = 0;; ++restart) {
    const int code = launch_ranks(launch);
    const bool is_final = code == 0 || code == kExitUsage || code == launch.quiet_code || code == kCannotExecute ||
                          code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP;
    if (is_final || restart == max_restarts) return code;
    fmt::print(stderr, "tutti: restart {} of {}, {}\n", restart + 1, max_restarts, goes_on());
  }
}

}  // namespace tutti
