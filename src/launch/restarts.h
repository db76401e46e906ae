#pragma once

#include <functional>
#include <string>

#include "launch/launcher.h"

namespace tutti {

/// launch_ranks(), and again while ranks fail, `max_restarts` times at most. What trying again would not mend ends it:
/// options that cannot work, a program that cannot be executed, a signal from outside, and `launch.quiet_code`.
/// `goes_on` says from where a restart goes on, for the line on stderr.
int launch_with_restarts(const LaunchOptions& launch, int max_restarts, const std::function<std::string()>& goes_on);

}  // namespace tutti
