#include "netbox/holder.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "netbox/processes.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

/// Reports in the child that a step failed, and ends it.
[[noreturn]] void fail(int report, const char* step) {
  const std::string text = fmt::format("{}: {}", step, std::strerror(errno));
  [[maybe_unused]] const ssize_t put = ::write(report, text.data(), text.size());
  ::_exit(1);
}

void write_setting(const char* path, const char* value) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t put = ::write(fd, value, std::strlen(value));
  ::close(fd);
}

void enter_network(const std::string& name, int report) {
  const int fd = ::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) fail(report, "entering its network namespace");
  // After a pause TCP would begin slowly again. A 1 MB ring all-reduce over 1 Gbit took 20.1 ms with that, 13.1
  // without.
  write_setting("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0");
}

void make_mounts(const BoxNode& node, int report) {
  if (::unshare(CLONE_NEWNS) != 0) fail(report, "making a mount namespace");
  // Slave rather than private: what is unmounted outside (a deleted namespace's file, say) must vanish here too, or it
  // would stay busy.
  if (::mount("", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) fail(report, "separating the mounts");
  if (::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0) fail(report, "mounting /dev/shm");
  const std::string hosts = "/etc/netns/" + node.net_namespace + "/hosts";
  if (::mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) fail(report, "mounting /etc/hosts");
  // So that /sys/class/net shows this node's devices, as with `ip netns exec`. Programs that look there are few.
  if (::umount2("/sys", MNT_DETACH) == 0) ::mount("sysfs", "/sys", "sysfs", 0, nullptr);
}

/// A pipe of the caller that stayed open here would never end for whoever reads it.
void let_go_of_descriptors(int report) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(nothing, fd);
  std::vector<int> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    open.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int fd : open) {
    if (fd > 2 && fd != report) ::close(fd);
  }
}

[[noreturn]] void hold(const BoxNode& node, const std::string& sleep, pid_t parent, int report) {
  // Until it is in the namespace, where it can be found, it must not outlive us.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
  enter_network(node.net_namespace, report);
  if (::unshare(CLONE_NEWUTS) != 0) fail(report, "making a host name namespace");
  if (::sethostname(node.name.data(), node.name.size()) != 0) fail(report, "setting the host name");
  make_mounts(node, report);
  if (::chdir("/") != 0) fail(report, "changing to /");
  ::prctl(PR_SET_PDEATHSIG, 0);
  let_go_of_descriptors(report);
  const std::string title = node.net_namespace + "-holder";  // what ps shows
  ::execl(sleep.c_str(), title.c_str(), "infinity", static_cast<char*>(nullptr));
  fail(report, "executing sleep");
}

}  // namespace

pid_t start_holder(const BoxNode& node) {
  const std::string sleep = find_program("sleep");
  if (sleep.empty()) throw Error("the program `sleep` is not there; install coreutils");
  Pipe report = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) hold(node, sleep, parent, report.write_end.get());
  report.write_end.close();
  std::string problem = child < 0 ? std::strerror(errno) : "";
  std::array<char, 512> buffer;
  while (child > 0) {  // until exec has closed the other end
    const ssize_t got = ::read(report.read_end.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    problem.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (problem.empty() && has_holder({node.name, node.net_namespace, "", "", 1, child, 0})) return child;
  if (child > 0) wait_for_child(child);
  throw Error("cannot start the process that holds node {}: {}", node.name,
              problem.empty() ? "it ended at once" : problem);
}

bool has_holder(const BoxNode& node) { return is_in_namespace(node.holder, node.net_namespace); }

}  // namespace tutti::netbox
