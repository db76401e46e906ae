#include "base/process.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Reads both until both end: a program that fills one pipe must not wait for us at the other.
void read_both(std::array<int, 2> fds, std::array<std::string*, 2> texts) {
  int open = 2;
  while (open > 0) {
    std::array<pollfd, 2> polled = {{{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i] < 0 || polled[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = ::read(fds[i], buffer.data(), buffer.size());
      if (got > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        ::close(fds[i]);
        fds[i] = -1;
        --open;
      }
    }
  }
}

std::string trimmed(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

}  // namespace

std::vector<char*> exec_arguments(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin:/sbin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    folder.append("/").append(name);
    if (::access(folder.c_str(), X_OK) == 0) return folder;
  }
  return "";
}

ToolResult run_tool(const std::vector<std::string>& words) {
  const std::string program = find_program(words.at(0));
  if (program.empty()) throw Error("the program `{}` is not there", words[0]);
  std::array<int, 2> out;
  std::array<int, 2> err;
  if (::pipe2(out.data(), O_CLOEXEC) != 0) throw Error("cannot create a pipe: {}", std::strerror(errno));
  if (::pipe2(err.data(), O_CLOEXEC) != 0) {
    const int reason = errno;
    ::close(out[0]);
    ::close(out[1]);
    throw Error("cannot create a pipe: {}", std::strerror(reason));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &actions, nullptr, exec_arguments(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  ToolResult result;
  if (problem != 0) {
    ::close(out[0]);
    ::close(err[0]);
    throw Error("cannot start `{}`: {}", words[0], std::strerror(problem));
  }
  read_both({out[0], err[0]}, {&result.output, &result.errors});
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string must_run(const std::vector<std::string>& words) {
  const ToolResult result = run_tool(words);
  if (result.exit_code == 0) return result.output;
  const std::string said = trimmed(result.errors.empty() ? result.output : result.errors);
  throw Error("`{}` failed with exit code {}{}", fmt::join(words, " "), result.exit_code,
              said.empty() ? "" : ": " + said);
}

void become(const std::vector<std::string>& words) {
  const std::string program = find_program(words.at(0));
  if (!program.empty()) ::execv(program.c_str(), exec_arguments(words).data());
  throw Error("cannot execute `{}`: {}", words[0], program.empty() ? "it is not there" : std::strerror(errno));
}

std::vector<std::string> own_words() {
  std::istringstream text(read_file("/proc/self/cmdline"));
  std::vector<std::string> words;
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace tutti
