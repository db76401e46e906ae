#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/launcher.h"

namespace tutti {

/// launch_ranks(), and again while ranks fail, `max_restarts` times at most. What trying again would not mend ends it:
/// options that cannot work, a program that cannot be executed, a signal from outside, and these exit codes.
/// `goes_on` may change what is started again, and says from where it goes on, for the line on stderr.
int launch_with_restarts(LaunchOptions launch, int max_restarts, const std::vector<int>& final_codes,
                         const std::function<std::string(LaunchOptions&)>& goes_on);

}  // namespace tutti
