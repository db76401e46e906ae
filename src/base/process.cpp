#include "base/process.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/fd.h"
#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Reads both until both end: a program that fills one pipe must not wait for us at the other.
void read_both(std::array<Fd, 2> fds, std::array<std::string*, 2> texts) {
  while (fds[0] || fds[1]) {
    std::array<pollfd, 2> polled = {{{fds[0].get(), POLLIN, 0}, {fds[1].get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (!fds[i] || polled[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = ::read(fds[i].get(), buffer.data(), buffer.size());
      if (got > 0)
        texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      else if (got == 0 || errno != EINTR)
        fds[i].close();
    }
  }
}

std::string trimmed(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

/// Where in these folders ("a:b:c") a program is, or "".
std::string find_in(const std::string& list, const std::string& name) {
  std::istringstream folders(list);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    folder.append("/").append(name);
    if (::access(folder.c_str(), X_OK) == 0) return folder;
  }
  return "";
}

std::string path_variable() {
  const char* const path = std::getenv("PATH");
  return path == nullptr ? "" : path;
}

/// As exec does it.
void close_what_exec_closes() {
  std::vector<int> found;
  {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      found.push_back(std::atoi(entry.path().filename().c_str()));
  }
  for (const int fd : found)
    if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) != 0) ::close(fd);
}

/// The rest of a child that goes on as a copy of its parent.
[[noreturn]] void run_copy(const ChildStart& start) {
  int code = kCannotExecute;
  try {
    close_what_exec_closes();
    if (start.environment) {
      ::clearenv();
      for (const std::string& variable : *start.environment) {
        const std::size_t equals = variable.find('=');
        if (equals != std::string::npos && equals > 0)
          ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
      }
    }
    code = start.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::exit(code);  // as main() ends
}

/// In the child, up to exec: only calls that are safe there when the parent has threads.
[[noreturn]] void become_child(const ChildStart& start, char* const* words, char* const* environment, pid_t parent) {
  if (start.leads_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, start.death_signal);
  if (::getppid() != parent) ::_exit(1);  // it died before it could be told to tell us
  if (start.stdin_fd >= 0) ::dup2(start.stdin_fd, STDIN_FILENO);
  if (start.stdout_fd >= 0) ::dup2(start.stdout_fd, STDOUT_FILENO);
  if (start.stderr_fd >= 0) ::dup2(start.stderr_fd, STDERR_FILENO);
  if (start.kept_fd >= 0) ::fcntl(start.kept_fd, F_SETFD, 0);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now = {};
    ::sigaction(number, nullptr, &now);
    if (number != SIGHUP || now.sa_handler != SIG_IGN) ::sigaction(number, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (start.run) run_copy(start);
  ::execvpe(words[0], words, environment);
  const int reason = errno;
  if (start.failure_fd >= 0) {
    [[maybe_unused]] const ssize_t put = ::write(start.failure_fd, &reason, sizeof reason);
  } else {
    // strerror() promises nothing here. It has no work to do in the locale of this program, which is always C.
    const char* const why = std::strerror(reason);
    for (const char* part : {"cannot execute ", const_cast<const char*>(words[0]), ": ", why, "\n"}) {
      [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, part, std::strlen(part));
    }
  }
  ::_exit(kCannotExecute);
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
  return find_in(path_variable() + ":/usr/sbin:/sbin:/usr/bin:/bin", name);
}

bool is_in_path(const std::string& name) { return !find_in(path_variable(), name).empty(); }

pid_t start_child(const ChildStart& start) {
  const std::vector<char*> words = exec_arguments(start.words);
  const std::vector<char*> environment = start.environment ? exec_arguments(*start.environment) : std::vector<char*>();
  const pid_t parent = ::getpid();
  if (start.run) std::fflush(nullptr);  // or the child would write what is still to be written, too
  // No signal between fork and exec: our handlers in the child would write to our pipes.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child == 0) become_child(start, words.data(), start.environment ? environment.data() : environ, parent);
  const int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0)
    throw Error("no process for `{}`: {} (a limit on processes or memory; see ulimit -u)", start.words[0],
                std::strerror(reason));
  if (start.leads_group) ::setpgid(child, child);  // whoever is first
  return child;
}

int wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

ToolResult run_tool(const std::vector<std::string>& words) {
  const std::string program = find_program(words.at(0));
  if (program.empty()) throw Error("the program `{}` is not there", words[0]);
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), STDERR_FILENO);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &actions, nullptr, exec_arguments(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw Error("cannot start `{}`: {}", words[0], std::strerror(problem));
  out.write_end.close();
  err.write_end.close();
  ToolResult result;
  read_both({std::move(out.read_end), std::move(err.read_end)}, {&result.output, &result.errors});
  result.exit_code = exit_code_of(wait_for_child(child));
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
