#pragma once

#include <string>
#include <vector>

#include "launch/launcher.h"

namespace tutti {

/// A name that no other launch has, and that nobody can guess.
std::string make_job_name();

/// Our environment with a rank's own variables; notes of its end go to `exit_notes_fd`.
std::vector<std::string> rank_environment(const LaunchOptions& options, int rank, const std::string& job,
                                          int exit_notes_fd);

/// For a command that tells its ranks their places itself.
std::vector<std::string> own_environment();

}  // namespace tutti
