// What `tutti cluster` really makes on this machine. Needs root and iproute2, and is skipped without.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/process.h"
#include "netbox/box.h"
#include "netbox/connection.h"
#include "netbox/node_links.h"
#include "netbox/processes.h"
#include "support/command.h"
#include "support/machine.h"

namespace tutti::netbox {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool wait_for(const std::function<bool()>& condition, double seconds = 20) {
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

bool has_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return !std::getline(file, line) || line.find(") Z ") != std::string::npos;
}

/// All that a cluster has on this machine: namespaces, folders, mounts and processes.
std::vector<std::string> traces_of(const std::string& name) {
  std::vector<std::string> found;
  const std::string prefix = namespace_prefix(name);
  for (const char* const folder : {"/run/netns", "/etc/netns", "/run/tutti/cluster"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      const std::string file = entry.path().filename().string();
      if (file == name || file.rfind(prefix, 0) == 0) found.push_back(entry.path().string());
    }
  }
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string first;
    std::getline(file, first, '\0');
    if (first.rfind(prefix, 0) == 0) found.push_back("process " + entry.path().filename().string() + " " + first);
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(prefix) != std::string::npos) found.push_back("mount " + line);
  }
  return found;
}

/// A cluster name of this process, and nothing left of it in the end.
class ClusterInABox : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = why_no_box();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (!why_no_box().empty()) return;
    down(name_);
    down(other_);
    EXPECT_THAT(traces_of(name_), IsEmpty());  // and so of other_, which begins with it
    fs::remove(file_);
  }

  /// Runs `tutti cluster ACTION --name NAME ARGUMENTS`.
  CommandResult tool(const std::string& action, const std::string& arguments = "", const std::string& name = "") const {
    return run_command(TUTTI_CLUSTER_TOOL " " + action + " --name " + (name.empty() ? name_ : name) + " " + arguments);
  }
  void bring_up(const std::string& arguments) const {
    const CommandResult result = tool("up", arguments);
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  /// Starts the command in the background and returns its process id.
  pid_t start(const std::string& action, const std::string& arguments, const std::string& output = "/dev/null") const {
    const CommandResult result = run_command("{ exec " TUTTI_CLUSTER_TOOL " " + action + " --name " + name_ + " " +
                                             arguments + " >" + output + " 2>&1 & echo $!; }");
    return static_cast<pid_t>(std::stol(result.output));
  }
  /// Runs in the background until killed: makes file_ grow. Returns when it does.
  void start_writer(const std::string& node) const {
    start("run", "--node " + node + " -- sh -c 'while :; do echo x >>" + file_ + "; sleep 0.02; done'");
    ASSERT_TRUE(wait_for([&] { return size() > 0; }));
  }
  std::uintmax_t size() const { return fs::exists(file_) ? fs::file_size(file_) : 0; }

  const std::string name_ = "test" + std::to_string(::getpid());
  const std::string other_ = name_ + "-n0";  // its namespaces begin like those of name_
  const std::string file_ = ::testing::TempDir() + "cluster_test_" + std::to_string(::getpid());
};

TEST_F(ClusterInABox, LeavesNothingBehind) {
  bring_up("--nodes 3");
  EXPECT_GE(traces_of(name_).size(), 4U + 3 + 1 + 3);  // namespaces, host folders, state, holders; and mounts
  start("run", "--node n1 -- sleep 1000");
  ASSERT_TRUE(wait_for([&] { return processes_in(namespace_prefix(name_) + "n1").size() == 2; }));
  const CommandResult result = tool("down");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(traces_of(name_), IsEmpty());
  EXPECT_THAT(tool("down").output, HasSubstr("nothing there"));
}

TEST_F(ClusterInABox, GivesEachNodeItsHostNameSharedMemoryAndHostsFile) {
  bring_up("--nodes 2");
  EXPECT_EQ(tool("run", "--node n1 -- sh -c 'hostname; touch /dev/shm/mine'").output, "n1\n");
  EXPECT_EQ(tool("run", "--node n1 -- ls /dev/shm").output, "mine\n");  // of the node, not of one command
  EXPECT_EQ(tool("run", "--node n0 -- ls /dev/shm").output, "");
  EXPECT_FALSE(fs::exists("/dev/shm/mine"));
  EXPECT_THAT(tool("run", "-- getent hosts n1").output, HasSubstr("10.77.0.2"));
  const Box cluster = load(name_);
  const Connection connection(cluster.nodes[0], cluster.nodes[1]);
  connection.send(1000);
  EXPECT_TRUE(connection.receive(1000, 10));
}

TEST_F(ClusterInABox, PassesOnExitCodesInputAndTheCurrentFolder) {
  bring_up("--nodes 2");
  EXPECT_EQ(tool("run", "-- sh -c 'exit 7'").exit_code, 7);
  EXPECT_EQ(tool("run", "--node n1 -- cat </etc/hostname").output, read_file("/etc/hostname"));
  EXPECT_EQ(tool("run", "-- pwd").output, fs::current_path().string() + "\n");
  EXPECT_EQ(tool("run", "-- no-such-program").exit_code, 127);
  EXPECT_EQ(tool("run", "-- printf '<%s>' '' '[a,b]' -- --all 'c d'").output, "<><[a,b]><--><--all><c d>");
  const CommandResult all = tool("run", "--all -- sh -c 'hostname; [ $(hostname) = n0 ] || exit 5'");
  EXPECT_EQ(all.exit_code, 5);
  EXPECT_THAT(all.output, AllOf(HasSubstr("[n0] n0\n"), HasSubstr("[n1] n1\n"), HasSubstr("n1 failed: exit code 5")));
}

TEST_F(ClusterInABox, EndsWhatItRunsWhenInterrupted) {
  bring_up("--nodes 2");
  const Box cluster = load(name_);
  const auto all_have = [&](std::size_t processes) {
    return wait_for([&] {
      return std::all_of(cluster.nodes.begin(), cluster.nodes.end(),
                         [&](const BoxNode& node) { return processes_in(node.net_namespace).size() == processes; });
    });
  };
  const pid_t pid = start("run", "--all -- sleep 1000", file_);
  ASSERT_TRUE(all_have(2));
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  ASSERT_TRUE(wait_for([&] { return has_ended(pid); }));
  EXPECT_THAT(read_file(file_), AllOf(HasSubstr("n0 failed: Interrupt"), HasSubstr("n1 failed: Interrupt")));
  EXPECT_TRUE(all_have(1));
  run_command("timeout -s INT 0.5 " TUTTI_CLUSTER_TOOL " run --name " + name_ + " -- sleep 1000");
  EXPECT_TRUE(all_have(1));
}

TEST_F(ClusterInABox, EndsWhenToldThoughNobodyReadsWhatItPrints) {
  bring_up("--nodes 1");
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const Fd unread(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
  const pid_t pid = start("run", "--all -- yes", file_);
  const auto running = [&] { return processes_in(load(name_).nodes[0].net_namespace).size(); };
  ASSERT_TRUE(wait_for([&] { return running() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until every buffer on the way is full
  ASSERT_EQ(::kill(pid, SIGTERM), 0);
  EXPECT_TRUE(wait_for([&] { return running() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::kill(pid, SIGTERM);  // the first has stopped the command, this stops the wait for the reader
  EXPECT_TRUE(wait_for([&] { return has_ended(pid); }, 5));
}

TEST_F(ClusterInABox, ShapesBothDirectionsAlsoOfALinkInUse) {
  bring_up("--nodes 2 --rate 1gbit");
  const Box cluster = load(name_);
  const Connection connection(cluster.nodes[0], cluster.nodes[1]);
  EXPECT_EQ(link_state(cluster, cluster.nodes[1]).in, 1'000'000'000U);
  ASSERT_EQ(tool("shape", "--rate 20mbit n1").exit_code, 0);
  const LinkState state = link_state(cluster, cluster.nodes[1]);
  EXPECT_EQ(state.in, 20'000'000U);
  EXPECT_EQ(state.out, 20'000'000U);
  EXPECT_EQ(link_state(cluster, cluster.nodes[0]).out, 1'000'000'000U);
  EXPECT_EQ(load(name_).nodes[1].rate, 20'000'000U);
  constexpr std::size_t kBytes = 2'000'000;  // 0.8 s at 20 Mbit
  const auto start = Clock::now();
  std::thread sender([&] { connection.send(kBytes); });
  EXPECT_TRUE(connection.receive(kBytes, 20));
  sender.join();
  EXPECT_GT(seconds_since(start), 0.4);
  ASSERT_EQ(tool("shape", "--all --rate unlimited").exit_code, 0);
  EXPECT_EQ(link_state(cluster, cluster.nodes[1]).in, 0U);
}

TEST_F(ClusterInABox, RecordsTheScaleOfANetworkThatIsTooFast) {
  const CommandResult result = tool("up", "--nodes 1 --network 400gbe");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Network network = load(name_).network;
  if (!network.is_scaled()) GTEST_SKIP() << "this machine has the cores to carry 400gbe";
  EXPECT_EQ(network.scale(), 400);
  EXPECT_THAT(result.output, HasSubstr("400gbe SCALED to 1gbit: 1/400 of its rate"));
}

TEST_F(ClusterInABox, CutsAndHealsLinksUnderOpenConnections) {
  bring_up("--nodes 2");
  const Box cluster = load(name_);
  const Connection connection(cluster.nodes[0], cluster.nodes[1]);
  connection.send(10);
  EXPECT_TRUE(connection.receive(10, 10));
  ASSERT_EQ(tool("cut", "n1").exit_code, 0);
  connection.send(10);
  EXPECT_FALSE(connection.receive(10, 0.3));
  EXPECT_THAT(tool("status").output, HasSubstr("10.77.0.2    cut"));
  ASSERT_EQ(tool("heal").exit_code, 0);
  EXPECT_TRUE(connection.receive(10, 20));
  EXPECT_THAT(tool("status").output, Not(HasSubstr("cut")));
}

TEST_F(ClusterInABox, PausesResumesAndKillsWhatRunsInANode) {
  bring_up("--nodes 2");
  start_writer("n1");
  const CommandResult paused = tool("pause", "n1");
  ASSERT_EQ(paused.exit_code, 0) << paused.output;
  const auto paused_at = size();
  EXPECT_THAT(tool("status").output, HasSubstr("10.77.0.2    paused"));
  const CommandResult refused = tool("run", "--node n1 -- true");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("n1 is paused. `tutti cluster resume n1 --name " + name_));
  EXPECT_EQ(size(), paused_at);
  ASSERT_EQ(tool("resume", "n1").exit_code, 0);
  EXPECT_TRUE(wait_for([&] { return size() > paused_at; }));
  EXPECT_EQ(tool("kill").exit_code, 2);
  EXPECT_EQ(tool("kill", "n1").exit_code, 0);
  EXPECT_EQ(processes_in(namespace_prefix(name_) + "n1").size(), 1U);
  EXPECT_EQ(tool("run", "--node n1 -- hostname").output, "n1\n");  // usable at once
}

TEST_F(ClusterInABox, KilledWhileItComesUpIsRemovedByDown) {
  const pid_t pid = start("up", "--nodes 100");
  ASSERT_TRUE(wait_for([&] { return fs::exists("/run/netns/" + namespace_prefix(name_) + "n5"); }));
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_TRUE(wait_for([&] { return has_ended(pid); }));
  EXPECT_FALSE(load_if_there(name_));
  const CommandResult result = tool("down");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(traces_of(name_), IsEmpty());
}

TEST_F(ClusterInABox, InterruptedWhileItComesUpRemovesItself) {
  const pid_t pid = start("up", "--nodes 100");
  ASSERT_TRUE(wait_for([&] { return fs::exists("/run/netns/" + namespace_prefix(name_) + "n5"); }));
  ASSERT_EQ(::kill(pid, SIGTERM), 0);
  ASSERT_TRUE(wait_for([&] { return has_ended(pid); }));
  EXPECT_THAT(traces_of(name_), IsEmpty());
}

TEST_F(ClusterInABox, ThatLostAHolderSaysSoAndIsReplacedByUp) {
  bring_up("--nodes 2");
  EXPECT_THAT(tool("up").output, HasSubstr("is up already, with 2 nodes. --replace rebuilds it"));
  const pid_t holder = load(name_).nodes[1].holder;
  ASSERT_EQ(::kill(holder, SIGKILL), 0);
  ASSERT_TRUE(wait_for([&] { return processes_in(namespace_prefix(name_) + "n1").empty(); }));
  EXPECT_THAT(tool("status").output, HasSubstr("10.77.0.2    down"));
  EXPECT_THAT(tool("run", "--node n1 -- true").output, HasSubstr("n1 is down"));
  EXPECT_THAT(tool("up", "--nodes 2").output, HasSubstr("removed what was left of an earlier cluster"));
  EXPECT_EQ(tool("up", "--nodes 1 --replace").exit_code, 0);
  EXPECT_EQ(load(name_).nodes.size(), 1U);
}

TEST_F(ClusterInABox, StandsBesideOthers) {
  bring_up("--nodes 2");
  ASSERT_EQ(tool("up", "--nodes 1", other_).exit_code, 0);
  EXPECT_EQ(tool("down").exit_code, 0);
  EXPECT_THAT(traces_of(other_), Not(IsEmpty()));
  EXPECT_EQ(tool("run", "-- hostname", other_).output, "n0\n");
  EXPECT_THAT(tool("run", "-- hostname").output, HasSubstr(other_));  // what there is instead
}

TEST_F(ClusterInABox, RefusesWhatCannotBeMeant) {
  for (const char* const arguments : {"--nodes 0", "--rate 5", "--network 10gb", "--rate 1gbit --network 1gbe",
                                      "--slots 1,2 --nodes 3", "--slots 1,0", "--ranks-per-node 0", "--name ../x"})
    EXPECT_EQ(tool("up", arguments).exit_code, 2) << arguments;
  bring_up("--nodes 2");
  EXPECT_EQ(tool("cut").exit_code, 2);
  EXPECT_EQ(tool("shape", "n1").exit_code, 2);
  EXPECT_EQ(tool("run").exit_code, 2);
  const CommandResult unknown = tool("cut", "n01");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("did you mean"));
}

TEST_F(ClusterInABox, TellsOthersThanRootWhatToDo) {
  const fs::path folder = ::testing::TempDir() + name_ + "-tool";
  fs::create_directories(folder);
  fs::copy_file(TUTTI_CLUSTER_TOOL, folder / "tool");
  fs::permissions(folder, fs::perms(0755));
  const CommandResult result = run_command("setpriv --reuid 65534 --regid 65534 --clear-groups " +
                                           (folder / "tool").string() + " up </dev/null");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("needs root: run it with sudo"));
  remove_tree(folder);
}

TEST_F(ClusterInABox, LetsAPlainMpirunReachAllNodes) {
  if (find_program("mpirun").empty()) GTEST_SKIP() << "needs mpirun (openmpi-bin)";
  bring_up("--slots 2,1,1");
  const auto hosts = [&](const std::string& arguments) {
    const CommandResult result = tool("run", arguments + " 2>/dev/null | sort | tr '\\n' ' '");
    return result.output;
  };
  EXPECT_EQ(hosts("-- mpirun -np 4 hostname"), "n0 n0 n1 n2 ");
  EXPECT_EQ(hosts("--map-by node -- mpirun -np 3 hostname"), "n0 n1 n2 ");
}

}  // namespace
}  // namespace tutti::netbox
