#include "launch/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace tutti {
namespace {

struct Child {
  pid_t pid;
  pid_t group;
};

std::vector<Child> children() {
  std::vector<Child> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;                      // it has ended meanwhile
    std::istringstream fields(text.substr(text.rfind(')') + 1));  // a name may have spaces and brackets
    char state = 0;
    pid_t parent = 0, group = 0;
    fields >> state >> parent >> group;
    if (parent == ::getpid()) found.push_back({std::stoi(name), group});
  }
  return found;
}

}  // namespace

Orphans::Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

Orphans::~Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

void Orphans::end_all(std::chrono::milliseconds grace) {
  const auto start = Clock::now();
  while (true) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended > 0) continue;
    if (ended < 0) return;
    if (Clock::now() - start >= grace) {
      for (const Child& child : children()) ::kill(child.group == child.pid ? -child.pid : child.pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace tutti
