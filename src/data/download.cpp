#include "data/download.h"

#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/sha256.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotResume = 33;  // curl's exit codes
constexpr int kHttpError = 22;
constexpr int kBadResume = 36;
constexpr int kTimedOut = 28;

/// Runs curl to its end; what it says goes to our stderr. Returns its exit code.
int run_curl(std::vector<std::string> arguments) {
  if (!is_in_path("curl")) throw Error("the program curl is not there; on Debian: apt-get install curl");
  arguments.insert(arguments.begin(), {"curl", "--fail", "--location", "--silent", "--show-error", "--retry", "3",
                                       "--connect-timeout", "20"});
  ChildStart curl;
  curl.words = std::move(arguments);
  return exit_code_of(wait_for_child(start_child(curl)));
}

bool is_right(const fs::path& path, const std::string& sha256) {
  return fs::exists(path) && sha256_of_file(path) == sha256;
}

}  // namespace

void download(const Download& what) {
  const fs::path part = what.to.string() + ".part";
  make_folders(what.to.parent_path());
  if (is_right(part, what.sha256)) {
    fs::rename(part, what.to);
    return;
  }
  const bool is_begun = fs::exists(part) && fs::file_size(part) > 0;
  const auto fetch = [&](bool resume) {
    std::vector<std::string> arguments{"--output", part.string(),  "--speed-limit",
                                       "1",        "--speed-time", std::to_string(what.stall_seconds)};
    if (resume) arguments.insert(arguments.end(), {"--continue-at", "-"});
    arguments.push_back(what.url);
    return run_curl(std::move(arguments));
  };
  int code = fetch(is_begun);
  // A server that cannot go on where we stopped, or a part that was of another file: from the beginning.
  const bool cannot_go_on = code == kCannotResume || code == kBadResume || code == kHttpError;
  if (is_begun && (cannot_go_on || (code == 0 && !is_right(part, what.sha256)))) {
    fs::remove(part);
    code = fetch(false);
  }
  if (code == kTimedOut) {
    throw Error("{} does not answer, or sends nothing for {} s. To go on, repeat the command.", what.url,
                what.stall_seconds);
  }
  if (code != 0) {
    throw Error(
        "cannot fetch {} (curl ended with {}). Check the network and $https_proxy; to go on, repeat the command.",
        what.url, code);
  }
  const std::string found = sha256_of_file(part);
  if (found != what.sha256) {
    fs::remove(part);
    throw Error("{} is not what it should be: its SHA-256 is {}, expected {}. It was not kept.", what.url, found,
                what.sha256);
  }
  flush_to_disk(part);
  fs::rename(part, what.to);
}

}  // namespace tutti
