#include "launch/mpirun_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Open MPI's order of places.
fs::path session_base() {
  for (const char* const name : {"OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"})
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return "/tmp";
}

/// "node1", also of node1.cluster.org.
std::string short_host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "";
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

/// Removes the segments of a job. Their names have the job's number, whose upper half is the same for mpirun and all
/// that it starts.
void remove_segments(const std::string& host, uint32_t job) {
  const std::string prefix = fmt::format("vader_segment.{}.{}.{:x}", host, ::geteuid(), job >> 16);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename().string();
    // After the prefix come four digits, a dot and the rank.
    if (name.compare(0, prefix.size(), prefix) == 0 && name.find('.', prefix.size()) == prefix.size() + 4)
      ::unlink(entry.path().c_str());
  }
}

}  // namespace

void remove_mpirun_files(pid_t mpirun) noexcept try {
  const std::string host = short_host_name();
  const fs::path user = session_base() / fmt::format("ompi.{}.{}", host, ::geteuid());
  const fs::path session = user / fmt::format("pid.{}", mpirun);
  std::ifstream contact(session / "contact.txt");  // begins with the job's number
  if (uint32_t job = 0; contact >> job) remove_segments(host, job);
  remove_tree(session);
  ::rmdir(user.c_str());  // unless others are in it
} catch (...) {
  // What cannot be removed stays. Nothing depends on it.
}

}  // namespace tutti
