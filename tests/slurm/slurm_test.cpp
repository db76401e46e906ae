// `tutti slurm`, and its files in a real Slurm: see slurm_box.sh. That part needs root and more, and is skipped
// without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "comm/mpi/mpi.h"
#include "support/command.h"
#include "support/machine.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- the command ----

CommandResult tutti(const std::string& arguments) { return run_command(TUTTI_BINARY " " + arguments); }

TEST(SlurmCommand, PrintsAFileThatRunsThisProgram) {
  const CommandResult result =
      tutti("slurm --nodes 2 --ranks-per-node 2 --time 1:00:00 -- train --model mnist-cnn --name 'my run'");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n"),
                                   HasSubstr("\n  " TUTTI_BINARY " train \\\n"), HasSubstr("--name 'my run' \\\n")));
}

TEST(SlurmCommand, WritesItWhereOutputSays) {
  const std::string file = ::testing::TempDir() + "slurm_command_" + std::to_string(::getpid());
  const CommandResult result = tutti("slurm --sbatch account=lab --sbatch exclusive --output " + file + " -- models");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("sbatch " + file));
  EXPECT_THAT(read_file(file), HasSubstr("#SBATCH --account=lab\n#SBATCH --exclusive\n"));
  fs::remove(file);
}

TEST(SlurmCommand, SaysWhatIsWrongBeforeTheJobWaitsForIt) {
  const auto complains = [](const std::string& arguments, const std::string& text) {
    const CommandResult result = tutti("slurm " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    EXPECT_THAT(result.output, HasSubstr(text)) << arguments;
  };
  complains("", "Put it after --");
  complains("--nodes 2 --", "Put it after --");
  complains("--nodes two -- train", "--nodes");
  complains("--node 2 -- train", "did you mean '--nodes'?");
  complains("-- trian", "did you mean 'train'?");
  complains("-- train --modle mnist-cnn", "`tutti train` has no option '--modle'; did you mean '--model'?");
  complains("--nodes 0 -- train", "--nodes 0");
  complains("--time 1h -- train", "--time '1h'");
}

TEST(SlurmCommand, TeachesWithExamples) {
  const CommandResult result = tutti("slurm --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("Examples:"), HasSubstr("sbatch job.sh"), HasSubstr("--signal-seconds")));
}

// ---- its files in a Slurm ----

/// Why no Slurm can be started here, or "".
std::string why_not() {
  if (!built_with_mpi()) return "needs a build with MPI";
  return why_no_box({"munged", "slurmctld", "slurmd", "sbatch"});
}

/// Four nodes, with places for 3, 2, 2 and 2 ranks.
class SlurmBox : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!why_not().empty()) return;
    folder = ::testing::TempDir() + "tutti_slurm_" + std::to_string(::getpid());
    const CommandResult result = box("up", "3 2 2 2");
    ASSERT_EQ(result.exit_code, 0) << result.output;
    fs::create_directory(folder + "/jobs");
  }
  static void TearDownTestSuite() {
    if (folder.empty() || !fs::exists(folder)) return;
    const CommandResult result = box("down");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_FALSE(fs::exists(folder));
  }
  void SetUp() override {
    const std::string reason = why_not();
    if (!reason.empty()) GTEST_SKIP() << reason;
    ASSERT_TRUE(fs::exists(folder + "/jobs")) << "Slurm did not start";
  }
  void TearDown() override {
    if (!HasFailure() || name_.empty()) return;
    std::cerr << in_slurm("squeue").output << in_slurm("scontrol show job " + job_).output << "--- the job's log\n"
              << log() << box("logs").output;
    in_slurm("scancel " + job_);
  }

  static CommandResult box(const std::string& action, const std::string& arguments = "") {
    return run_command("OWNER=" + std::to_string(::getpid()) +
                       " CLUSTER_TOOL=" TUTTI_CLUSTER_TOOL " " TUTTI_SLURM_BOX " " + action + " '" + folder + "' " +
                       arguments);
  }
  /// Runs a command where Slurm can be reached.
  static CommandResult in_slurm(const std::string& command) { return box("run", command); }

  /// Writes a job file with `tutti slurm` and gives it to sbatch.
  void submit(const std::string& name, const std::string& slurm, const std::string& train) {
    name_ = name;
    const std::string file = folder + "/jobs/" + name + ".sh";
    const CommandResult written =
        tutti("slurm " + slurm + " --log '" + log_file() + "' --output '" + file + "' -- " + train_command(train));
    ASSERT_EQ(written.exit_code, 0) << written.output;
    const CommandResult submitted = in_slurm("sbatch --parsable '" + file + "'");
    ASSERT_EQ(submitted.exit_code, 0) << submitted.output;
    job_ = submitted.output.substr(0, submitted.output.find_first_not_of("0123456789"));
  }

  std::string train_command(const std::string& options) const {
    return "train --model mnist-cnn --train-size 400 --test-size 100 --batch 4 --threads 1 --no-eval --runs '" +
           folder + "/runs' --name " + name_ + " " + options;
  }

  static bool wait_for(const std::function<bool()>& condition) {
    for (const auto start = Clock::now(); seconds_since(start) < 240;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return condition();
  }
  /// "COMPLETED", "RUNNING", …
  std::string state() const {
    const std::string text = in_slurm("scontrol --oneliner show job " + job_).output;
    const std::string mark = " JobState=";
    const std::size_t begin = text.find(mark);
    if (begin == std::string::npos) return "";
    return text.substr(begin + mark.size(), text.find(' ', begin + 1) - begin - mark.size());
  }
  void expect_completed() const {
    const std::set<std::string> not_over = {"", "PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"};
    wait_for([&] { return not_over.count(state()) == 0; });
    EXPECT_EQ(state(), "COMPLETED");
  }
  /// Waits until the run has something to go on from.
  void wait_for_checkpoint() const {
    ASSERT_TRUE(wait_for([&] {
      std::error_code none;
      return fs::directory_iterator(folder + "/runs/" + name_ + "/checkpoints", none) != fs::directory_iterator();
    }));
  }

  std::string log_file() const { return folder + "/jobs/" + name_ + ".log"; }
  std::string log() const { return fs::exists(log_file()) ? read_file(log_file()) : "(none)\n"; }
  /// The run's last record of a kind.
  json record(const std::string& kind) const {
    std::istringstream lines(read_file(folder + "/runs/" + name_ + "/records.jsonl"));
    json found;
    for (std::string line; std::getline(lines, line);) {
      json record = json::parse(line);
      if (record.at("record") == kind) found = std::move(record);
    }
    return found;
  }
  /// The hosts of a record, each with how many ranks it has: "n0:2 n1:2".
  std::string hosts(const json& record) const {
    std::string text;
    for (const json& node : record.at("nodes"))
      text += (text.empty() ? "" : " ") + node.at("host").get<std::string>() + ":" +
              std::to_string(node.at("ranks").size());
    return text;
  }

  void expect_finished(int steps, const std::string& on_hosts) const {
    const json summary = record("summary");
    EXPECT_EQ(summary.at("steps"), steps);
    EXPECT_EQ(summary.at("transport"), "mpi");
    EXPECT_EQ(hosts(summary), on_hosts);
    EXPECT_EQ(record("run").at("launcher"), "srun");
  }

  static inline std::string folder;
  std::string name_;
  std::string job_;
};

TEST_F(SlurmBox, TrainsOnTwoNodes) {
  submit("two", "--nodes 2 --ranks-per-node 2", "--steps 12");
  expect_completed();
  EXPECT_THAT(log(), AllOf(HasSubstr("start 1: 4 ranks on 2 nodes: n[0-1]\n"), HasSubstr("Nodes: n0 (2), n1 (2)")));
  expect_finished(12, "n0:2 n1:2");
}

TEST_F(SlurmBox, TrainsOnFourNodes) {
  submit("four", "--nodes 4 --ranks-per-node 1", "--steps 12");
  expect_completed();
  EXPECT_THAT(log(), HasSubstr("4 ranks on 4 nodes: n[0-3]\n"));
  expect_finished(12, "n0:1 n1:1 n2:1 n3:1");
}

TEST_F(SlurmBox, TrainsOnUnequalNodes) {
  submit("unequal", "--nodes 2 --ranks 5", "--steps 12");
  expect_completed();
  EXPECT_THAT(log(), HasSubstr("5 ranks on 2 nodes: n[0-1]\n"));
  expect_finished(12, "n0:3 n1:2");
}

TEST_F(SlurmBox, RunsAPythonProgramOnTwoNodes) {
  if (*TUTTI_PYTHON_MISSING != 0) GTEST_SKIP() << TUTTI_PYTHON_MISSING;
  name_ = "python";
  const std::string program = folder + "/jobs/train.py";
  std::ofstream(program) << R"(
import torch, tutti
job = tutti.init()
torch.manual_seed(job.rank)
model = tutti.DistributedDataParallel(torch.nn.Linear(4, 2), strategy="dear")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.full((3, 4), float(job.rank + step))).pow(2).mean().backward()
    optimizer.step()
print(f"{job.size} ranks over {job.transport}: {sum(float(p.sum()) for p in model.parameters()):.9f}", flush=True)
)";
  const CommandResult result =
      in_slurm("env SLURM_PMIX_FENCE=ring TUTTI_RUN_NAME=python PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" TUTTI_PYTHON_PATH
               " srun --mpi=pmix --nodes=2 --ntasks=3 --chdir='" +
               folder + "' " TUTTI_PYTHON_PROGRAM " '" + program + "'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  std::map<std::string, int> said;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("3 ranks over mpi: ") != std::string::npos) ++said[line];
  ASSERT_EQ(said.size(), 1u) << result.output;
  EXPECT_EQ(said.begin()->second, 3) << result.output;
  EXPECT_EQ(record("run").at("launcher"), "srun");
}

const std::string kSteps = "--steps 60 --strategy bsp";
// Of 30 ms at least: there is time to interrupt the run.
const std::string kSlowSteps = kSteps + " --checkpoint-steps 10 --link-startup-us 30000";

TEST_F(SlurmBox, GoesOnAfterSlurmHasRequeuedTheJob) {
  submit("requeued", "--nodes 2 --ranks-per-node 1", kSlowSteps);
  wait_for_checkpoint();
  ASSERT_EQ(in_slurm("scontrol requeue " + job_).exit_code, 0);
  expect_completed();
  EXPECT_THAT(log(), AllOf(HasSubstr("start 2: 2 ranks on 2 nodes"), HasSubstr("Resumed at step ")));
  expect_finished(60, "n0:1 n1:1");
  // All went on from the same place: the weights are those of two ranks that nobody has disturbed.
  const std::string weights = record("summary").at("weights_sha256");
  name_ = "undisturbed";
  const CommandResult result = tutti(train_command(kSteps + " --ranks 2"));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(record("summary").at("weights_sha256"), weights);
}

TEST_F(SlurmBox, GoesOnAfterAnotherJobHasTakenItsNodes) {
  submit("preempted", "--nodes 2 --ranks-per-node 1", kSlowSteps);
  wait_for_checkpoint();
  const CommandResult urgent =
      in_slurm("sbatch --partition=urgent --nodes=4 --exclusive --output=/dev/null --wrap=true");
  ASSERT_EQ(urgent.exit_code, 0) << urgent.output;
  expect_completed();
  EXPECT_THAT(log(), AllOf(HasSubstr("DUE TO PREEMPTION"), HasSubstr("start 2: 2 ranks on 2 nodes"),
                           HasSubstr("Resumed at step ")));
  expect_finished(60, "n0:1 n1:1");
}

TEST_F(SlurmBox, SavesAndRequeuesItselfWhenItsTimeIsNearlyOver) {
  submit("saved", "--nodes 2 --ranks-per-node 1", kSlowSteps);
  wait_for_checkpoint();
  ASSERT_EQ(in_slurm("scancel --signal=USR1 " + job_).exit_code, 0);  // what #SBATCH --signal makes Slurm do
  expect_completed();
  EXPECT_THAT(log(), AllOf(HasSubstr("has saved and goes back into the queue"),
                           HasSubstr("start 2: 2 ranks on 2 nodes"), HasSubstr("Resumed at step ")));
  expect_finished(60, "n0:1 n1:1");
}

TEST_F(SlurmBox, RunsAllCellsOfASweepInOneJob) {
  name_ = "sweep";
  const std::string sweep = folder + "/jobs/sweep";
  write_file_atomically(
      sweep + ".yaml",
      "axes: {nodes: [1, 2], ranks: [2, 5], strategy: [bsp]}\n"
      "leave-out: [{nodes: 1, ranks: 5}]\n"
      "baseline: {ranks: 1, nodes: 1}\n"
      "options: {model: mnist-cnn, data: digits, train-size: 100, test-size: 10, batch: 4, steps: 12, "
      "threads: 1, no-eval: true}\n");
  write_file_atomically(sweep + ".sh", "#!/bin/sh\nexec " TUTTI_BINARY " bench " + sweep + ".yaml -o " + sweep + "\n");
  const CommandResult submitted =
      in_slurm("sbatch --parsable --nodes=2 --ntasks=5 --output='" + log_file() + "' " + sweep + ".sh");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.output;
  job_ = submitted.output.substr(0, submitted.output.find_first_not_of("0123456789"));
  expect_completed();
  EXPECT_THAT(log(), HasSubstr("4 of 4 cells done"));
  std::istringstream lines(read_file(sweep + "/cells.jsonl"));
  std::map<std::string, std::string> nodes;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    nodes[record.at("cell")] = record.at("node_list");
    for (const json& node : record.at("nodes")) nodes[record.at("cell")] += " " + node.at("ranks").dump();
  }
  const std::map<std::string, std::string> expected = {{"nodes1-ranks1.1", "n0 1"},
                                                       {"nodes1-ranks2.1", "n0 2"},
                                                       {"nodes2-ranks2.1", "n[0-1] 1 1"},
                                                       {"nodes2-ranks5.1", "n[0-1] 3 2"}};
  EXPECT_EQ(nodes, expected);
}

TEST_F(SlurmBox, StaysEndedWhenItIsCancelled) {
  submit("cancelled", "--nodes 2 --ranks-per-node 1", kSlowSteps);
  wait_for_checkpoint();
  ASSERT_EQ(in_slurm("scancel " + job_).exit_code, 0);
  EXPECT_TRUE(wait_for([&] { return in_slurm("squeue --noheader --jobs " + job_).output.empty(); }));
  EXPECT_EQ(state(), "CANCELLED");
}

}  // namespace
}  // namespace tutti
