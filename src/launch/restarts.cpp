#include "launch/restarts.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/process.h"

namespace tutti {

int launch_with_restarts(LaunchOptions launch, int max_restarts, const std::vector<int>& final_codes,
                         const std::function<std::string(LaunchOptions&)>& goes_on) {
  std::vector<int> finals = {0, kExitUsage, kCannotExecute, 128 + SIGINT, 128 + SIGTERM, 128 + SIGHUP};
  finals.insert(finals.end(), final_codes.begin(), final_codes.end());
  for (int restart = 0;; ++restart) {
    int stop_signal = 0;
    const int code = launch_ranks(launch, &stop_signal);
    const bool is_final = std::find(finals.begin(), finals.end(), code) != finals.end();
    if (is_final || stop_signal != 0 || restart == max_restarts) return code;
    const std::string line = fmt::format("tutti: restart {} of {}, {}\n", restart + 1, max_restarts, goes_on(launch));
    std::fputs(line.c_str(), stderr);
  }
}

}  // namespace tutti
