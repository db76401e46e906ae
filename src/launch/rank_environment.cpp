#include "launch/rank_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <random>
#include <string_view>

#include "base/exit_note.h"

namespace tutti {

std::string make_job_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}{:08x}{:08x}", ::getpid(), random(), random(), random(), random());
}

std::vector<std::string> rank_environment(const LaunchOptions& options, int rank, const std::string& job,
                                          int exit_notes_fd) {
  const std::string size = std::to_string(options.ranks);
  const std::string threads = std::to_string(options.threads);
  const std::map<std::string, std::string, std::less<>> own = {
      {"TUTTI_RANK", std::to_string(rank)},
      {"TUTTI_SIZE", size},
      {"TUTTI_LOCAL_RANK", std::to_string(rank)},
      {"TUTTI_LOCAL_SIZE", size},
      {"TUTTI_NODE", "0"},
      {"TUTTI_NODES", "1"},
      {"TUTTI_JOB", job},
      {"TUTTI_THREADS", threads},
      {kExitNotesVariable, std::to_string(exit_notes_fd)},
      {"OMP_NUM_THREADS", threads},
      {"OPENBLAS_NUM_THREADS", threads},
      {"MKL_NUM_THREADS", threads},
  };
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (own.find(text.substr(0, text.find('='))) == own.end()) environment.emplace_back(text);
  }
  for (const auto& [name, value] : own) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  return environment;
}

}  // namespace tutti
