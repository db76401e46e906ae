#include "launch/slurm_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "support/command.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SlurmJob train_job(const std::vector<std::string>& options = {}) {
  SlurmJob job;
  job.nodes = 2;
  job.ranks_per_node = 3;
  job.program = "/opt/tutti";
  job.command = {"train", "--model", "mnist-cnn"};
  job.command.insert(job.command.end(), options.begin(), options.end());
  return job;
}

std::string complaint(const SlurmJob& job) {
  try {
    slurm_file(job);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(SlurmFile, AsksForNodesAndRanks) {
  SlurmJob job = train_job();
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("\n#SBATCH --nodes=2\n"), HasSubstr("\n#SBATCH --ntasks-per-node=3\n"),
                                     Not(HasSubstr("--ntasks="))));
  EXPECT_EQ(count_ranks(job), 6);
  job.ranks_per_node = 0;
  job.ranks = 5;
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("\n#SBATCH --ntasks=5\n"), Not(HasSubstr("--ntasks-per-node"))));
  EXPECT_EQ(count_ranks(job), 5);
}

TEST(SlurmFile, AsksForNothingThatWasNotSaid) {
  EXPECT_THAT(slurm_file(train_job()), AllOf(Not(HasSubstr("--time")), Not(HasSubstr("--partition")),
                                             Not(HasSubstr("--gpus")), Not(HasSubstr("--cpus-per-task"))));
  SlurmJob job = train_job();
  job.time = "1:30:00";
  job.partition = "gpu";
  job.gpus_per_node = 4;
  job.cpus_per_rank = 2;
  job.lines = {"account=lab", "--exclusive"};
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("#SBATCH --time=1:30:00\n"), HasSubstr("#SBATCH --partition=gpu\n"),
                                     HasSubstr("#SBATCH --gpus-per-node=4\n"), HasSubstr("#SBATCH --cpus-per-task=2\n"),
                                     HasSubstr("#SBATCH --account=lab\n#SBATCH --exclusive\n"),
                                     HasSubstr("srun --mpi=pmix --wait=30 --cpus-per-task=2 ")));
}

TEST(SlurmFile, HasAllOfSbatchsOptionsBeforeTheFirstCommand) {
  const std::string text = slurm_file(train_job());
  EXPECT_EQ(text.compare(0, 12, "#!/bin/bash\n"), 0);
  EXPECT_LT(text.rfind("#SBATCH"), text.find("\nset -u\n"));
}

TEST(SlurmFile, CanBeStartedAgain) {
  SlurmJob job = train_job();
  job.signal_seconds = 120;
  job.saved_code = 77;
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("#SBATCH --requeue\n"), HasSubstr("#SBATCH --open-mode=append\n"),
                                     HasSubstr("#SBATCH --signal=USR1@120\n"), HasSubstr("\"$code\" -eq 77 ]"),
                                     HasSubstr("scontrol requeue \"$SLURM_JOB_ID\"")));
}

TEST(SlurmFile, AddsToATrainWhatItNeedsToGoOn) {
  EXPECT_THAT(slurm_file(train_job()),
              HasSubstr("  /opt/tutti train \\\n    --model mnist-cnn \\\n    --name tutti-\"$SLURM_JOB_ID\" \\\n"
                        "    --checkpoint-minutes 10 \\\n    --auto-resume ||\n"));
}

TEST(SlurmFile, LeavesAloneWhatATrainHas) {
  const std::string text = slurm_file(train_job({"--name=run1", "--checkpoint-steps", "5", "--auto-resume"}));
  EXPECT_THAT(text, AllOf(HasSubstr("    --name=run1 \\\n    --checkpoint-steps 5 \\\n    --auto-resume ||\n"),
                          Not(HasSubstr("--checkpoint-minutes")), HasSubstr("--job-name=run1\n")));
  EXPECT_EQ(text.find("--auto-resume"), text.rfind("--auto-resume"));
}

TEST(SlurmFile, AddsNothingToOtherCommands) {
  SlurmJob job;
  job.command = {"models"};
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("  tutti models ||\n"), Not(HasSubstr("--auto-resume"))));
}

TEST(SlurmFile, NamesTheJobAfterTheRunWhereSlurmCanReadThat) {
  EXPECT_THAT(slurm_file(train_job({"--name", "run 1"})), HasSubstr("--job-name=tutti\n"));
  SlurmJob job = train_job();
  job.name = "first";
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("--job-name=first\n"), HasSubstr("--name first-\"$SLURM_JOB_ID\"")));
}

TEST(SlurmFile, QuotesWordsForTheShell) {
  EXPECT_EQ(shell_quote("a/b.c=1,2"), "a/b.c=1,2");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("$(rm x) `y` it's"), "'$(rm x) `y` it'\\''s'");
  const std::string word = "a 'b' \"c\" $HOME \\ \n*";
  EXPECT_EQ(run_command("printf %s " + shell_quote(word)).output, word);
}

/// Runs the job's file with bash, where srun and scontrol only say how they were called; srun ends with this code,
/// after it has sent a signal to the script where one is given.
std::string run_file(const SlurmJob& job, int code, const std::string& signal = "") {
  const std::string file = ::testing::TempDir() + "slurm_file_test_" + std::to_string(::getpid());
  std::ofstream(file) << "srun() { printf '<%s>' \"$@\"; " << (signal.empty() ? "" : "kill -" + signal + " $$; ")
                      << "return " << code << "; }\nscontrol() { echo \"scontrol $*\"; }\n"
                      << slurm_file(job);
  const CommandResult result = run_command(
      "SLURM_JOB_ID=7 SLURM_NTASKS=6 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST='n[0-1]' bash " + file + "; echo =$?");
  std::remove(file.c_str());
  return result.output;
}

TEST(SlurmFile, RunsTheCommandAsItWasGiven) {
  const std::string output = run_file(train_job({"--name", "it's $HOME", "--steps", "5"}), 0);
  EXPECT_THAT(output,
              AllOf(HasSubstr("Job 7, start 1: 6 ranks on 2 nodes: n[0-1]\n"),
                    HasSubstr("<--mpi=pmix><--wait=30></opt/tutti><train><--model><mnist-cnn><--name><it's $HOME>"
                              "<--steps><5><--checkpoint-minutes><10><--auto-resume>"),
                    HasSubstr("=0\n"), Not(HasSubstr("scontrol"))));
  EXPECT_THAT(run_file(train_job(), 0), HasSubstr("<--name><tutti-7>"));
}

TEST(SlurmFile, TellsSlurmToMeetInOneWayUnlessAPersonHasSetAnother) {
  const auto fence = [](const std::string& set) {
    std::string text = slurm_file(train_job());
    text.resize(text.find("\nsrun "));
    return run_command("SLURM_JOB_ID=7 SLURM_NTASKS=6 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=n0 " + set +
                       " bash -c " + shell_quote(text + "\nprintenv SLURM_PMIX_FENCE"))
        .output;
  };
  EXPECT_THAT(fence(""), HasSubstr("\nring\n"));
  EXPECT_THAT(fence("SLURM_PMIX_FENCE=tree"), HasSubstr("\ntree\n"));
}

TEST(SlurmFile, RequeuesTheJobOnlyAfterItHasSaved) {
  EXPECT_THAT(run_file(train_job(), 85), AllOf(HasSubstr("scontrol requeue 7\n"), HasSubstr("=85\n")));
  EXPECT_THAT(run_file(train_job(), 85, "USR1"), AllOf(HasSubstr("scontrol requeue 7\n"), HasSubstr("=85\n")));
  EXPECT_THAT(run_file(train_job(), 1), AllOf(Not(HasSubstr("scontrol")), HasSubstr("=1\n")));
}

TEST(SlurmFile, DoesNotRequeueAJobThatWasEndedFromOutside) {
  EXPECT_THAT(run_file(train_job(), 85, "TERM"), AllOf(Not(HasSubstr("scontrol")), HasSubstr("=85\n")));
}

TEST(SlurmFile, ReadsTimesAsSlurmDoes) {
  EXPECT_EQ(slurm_seconds("90"), 90 * 60);
  EXPECT_EQ(slurm_seconds("10:30"), 10 * 60 + 30);
  EXPECT_EQ(slurm_seconds("1:30:00"), 5400);
  EXPECT_EQ(slurm_seconds("2-12"), 60 * 3600);
  EXPECT_EQ(slurm_seconds("1-0:30"), 24 * 3600 + 1800);
  EXPECT_EQ(slurm_seconds("1-1:01:01"), 25 * 3600 + 61);
  EXPECT_EQ(slurm_seconds("infinite"), -1);
  for (const char* const time : {"", "1h", "1:2:3:4", "-5", "1-", "0", "0:00"})
    EXPECT_THROW(slurm_seconds(time), UsageError) << time;
}

TEST(SlurmFile, SaysWhatCannotBe) {
  const auto with = [](const std::function<void(SlurmJob&)>& change) {
    SlurmJob job = train_job();
    change(job);
    return complaint(job);
  };
  EXPECT_EQ(with([](SlurmJob&) {}), "none");
  EXPECT_THAT(with([](SlurmJob& job) { job.command.clear(); }), HasSubstr("what shall the job run?"));
  EXPECT_THAT(with([](SlurmJob& job) { job.command = {"--model", "x"}; }), HasSubstr("what shall the job run?"));
  EXPECT_THAT(with([](SlurmJob& job) { job.nodes = 0; }), HasSubstr("--nodes 0"));
  EXPECT_THAT(with([](SlurmJob& job) { job.ranks_per_node = -1; }), HasSubstr("--ranks-per-node -1"));
  EXPECT_THAT(with([](SlurmJob& job) { job.ranks = 5; }), HasSubstr("give one of them"));
  EXPECT_THAT(with([](SlurmJob& job) { job.ranks_per_node = 0, job.ranks = 1; }), HasSubstr("each node needs one"));
  EXPECT_THAT(with([](SlurmJob& job) { job.signal_seconds = 0; }), HasSubstr("1 to 65535"));
  EXPECT_THAT(with([](SlurmJob& job) { job.time = "2"; }), HasSubstr("it would never get anywhere"));
  EXPECT_THAT(with([](SlurmJob& job) { job.time = "soon"; }), HasSubstr("--time 'soon'"));
  EXPECT_THAT(with([](SlurmJob& job) { job.partition = "a b"; }), HasSubstr("--partition 'a b'"));
  EXPECT_THAT(with([](SlurmJob& job) { job.name = "a\n#SBATCH --x"; }), HasSubstr("--job-name"));
  EXPECT_THAT(with([](SlurmJob& job) { job.log = "a b"; }), HasSubstr("--log 'a b'"));
  EXPECT_THAT(with([](SlurmJob& job) { job.mpi = ""; }), HasSubstr("--mpi needs"));
  EXPECT_THAT(with([](SlurmJob& job) { job.lines = {"=3"}; }), HasSubstr("--sbatch '=3'"));
}

TEST(SlurmFile, RefusesWhatATrainCannotDoInAJob) {
  EXPECT_THAT(complaint(train_job({"--hosts", "a:2"})), HasSubstr("leave it out"));
  EXPECT_THAT(complaint(train_job({"--resume", "first"})), HasSubstr("name the run with --name"));
  EXPECT_THAT(complaint(train_job({"--ranks", "4"})), HasSubstr("contradicts the job's 6 ranks"));
  EXPECT_EQ(complaint(train_job({"--ranks", "6"})), "none");
  EXPECT_EQ(complaint(train_job({"--ranks=4", "--servers", "2"})), "none");
}

TEST(SlurmFile, RunsASweepOnceAndGoesOnWithItWhenTheJobStartsAgain) {
  SlurmJob job;
  job.nodes = 2;
  job.ranks_per_node = 2;
  job.program = "/opt/tutti";
  job.command = {"bench", "mnist-nodes", "--quick", "--runs", "some where"};
  const std::string file = slurm_file(job);
  EXPECT_THAT(file, AllOf(HasSubstr("folder='some where'/tutti-\"$SLURM_JOB_ID\"\n"),
                          HasSubstr("/opt/tutti bench --resume \"$folder\" &\n"),
                          HasSubstr("/opt/tutti bench mnist-nodes \\\n    --quick \\\n"),
                          HasSubstr("    --output \"$folder\" &\n"), HasSubstr("#SBATCH --signal=B:USR1@90\n")));
  EXPECT_THAT(file, AllOf(Not(HasSubstr("\nsrun")), Not(HasSubstr("--auto-resume"))));
  job.command = {"bench", "my.yaml", "-o", "mine"};
  EXPECT_THAT(slurm_file(job), AllOf(HasSubstr("folder=mine\n"), Not(HasSubstr("--output \"$folder\""))));
  job.command = {"bench", "--resume", "mine"};
  EXPECT_THAT(slurm_file(job),
              AllOf(HasSubstr("\n/opt/tutti bench \\\n    --resume mine &\n"), Not(HasSubstr("if [ -e"))));
}

}  // namespace
}  // namespace tutti::netbox
