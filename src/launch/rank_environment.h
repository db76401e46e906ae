#pragma once

#include <string>
#include <vector>

#include "launch/launcher.h"

namespace tutti {

/// A name that no other launch has, and that nobody can guess.
std::string make_job_name();

/// Our environment with a rank's own variables.
std::vector<std::string> rank_environment(const LaunchOptions& options, int rank, const std::string& job);

/// For a command that tells its ranks their places itself.
std::vector<std::string> own_environment();

}  // namespace tutti
