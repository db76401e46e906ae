// The program as people use it: real processes, real files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/safetensors.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A folder of its own for each test, removed at its end.
class Train : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-train-test-" + std::to_string(::getpid()));
    remove_tree(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { remove_tree(folder_); }

  /// A run so small that it takes about a second, plus `arguments`.
  std::string command(const std::string& arguments) const {
    return std::string(TUTTI_BINARY) +
           " train --train-size 300 --test-size 101 --batch 16 --steps 8 --threads 1 --device cpu --runs " +
           (folder_ / "runs").string() + " " + arguments;
  }
  CommandResult train(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " + command(arguments));
  }
  json train_summary(const std::string& arguments) const {
    const fs::path file = folder_ / "summary.json";
    fs::remove(file);
    const CommandResult result = train(arguments + " --summary " + file.string());
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.exit_code == 0 ? json::parse(read_file(file)) : json{{"weights_sha256", "failed"}};
  }
  void expect_refusal(const std::string& arguments, int exit_code, const std::string& message) const {
    const CommandResult result = train(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.output;
    EXPECT_NE(result.output.find(message), std::string::npos) << "no '" << message << "' in:\n" << result.output;
  }

  fs::path folder_;
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 1200 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST_F(Train, SaysAndRecordsTheLossAsItGoes) {
  const CommandResult result = train("--ranks 2 --batch 8 --steps 8 --log-every 4 --name losses --no-eval --verbose");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  std::vector<double> losses;
  double mean = 0;
  std::ifstream records(folder_ / "runs/losses/records.jsonl");
  for (std::string line; std::getline(records, line);) {
    const json record = json::parse(line);
    if (record.at("record") == "progress") {
      losses.push_back(record.at("loss"));
      EXPECT_GT(record.at("loss_smoothed"), 0);
      EXPECT_GT(record.at("gradient_norm"), 0);
      EXPECT_NE(result.output.find(fmt::format("step {}/8: ", record.at("step").get<int>())), std::string::npos);
      EXPECT_NE(result.output.find(fmt::format(
                    "loss {:.4f} (smoothed {:.4f}), lr 0.05, gradient norm {:.3g}\n", record.at("loss").get<double>(),
                    record.at("loss_smoothed").get<double>(), record.at("gradient_norm").get<double>())),
                std::string::npos)
          << result.output;
    }
    if (record.at("record") == "epoch") {
      const json& rank = record.at("ranks")[0];
      mean = rank.at("loss_sum").get<double>() / rank.at("samples").get<double>();
    }
  }
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_NEAR((losses[0] + losses[1]) / 2, mean, 1e-4);  // of rank 0's samples, 32 each
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_EQ(count(result.output, "\n  rank "), 2) << result.output;
}

TEST_F(Train, GoesOnWhenNobodyReadsItsOutput) {
  const CommandResult result = run_command(
      "cd " + folder_.string() + " && (" +
      command("--ranks 2 --steps 60 --log-every 1 --verbose --name unread --summary runs/unread/more/s.json") +
      " --trace runs/unread/trace.json 2> errors; echo $? > code) | head -n 1");
  EXPECT_EQ(count(result.output, "\n"), 1) << result.output;
  EXPECT_EQ(read_file(folder_ / "code"), "0\n");
  EXPECT_EQ(count(read_file(folder_ / "errors"), "(Broken pipe): training goes on without it"), 1)
      << read_file(folder_ / "errors");
  EXPECT_EQ(json::parse(read_file(folder_ / "runs/unread/more/s.json")).at("steps"), 60);
  EXPECT_TRUE(fs::exists(folder_ / "runs/unread/trace.json"));
}

TEST_F(Train, SaysLittleWhereLittleIsAskedFor) {
  const CommandResult quiet = train("--ranks 2 --quiet --log-every 1 --tensorboard --name quiet");
  EXPECT_EQ(quiet.exit_code, 0) << quiet.output;
  EXPECT_EQ(quiet.output.rfind("Done: 8 steps", 0), 0U) << quiet.output;
  EXPECT_EQ(count(quiet.output, "\n"), 2) << quiet.output;
  EXPECT_EQ(count(run_command("ls " + (folder_ / "runs/quiet/tensorboard").string()).output, "events.out.tfevents."),
            1);
  expect_refusal("--quiet --verbose", 2, "--quiet and --verbose contradict each other");
}

TEST_F(Train, RefusesFilesThatCannotBeWrittenBeforeItTrains) {
  expect_refusal("--ranks 2 --trace no/trace.json", 2, "--trace no/trace.json: there is no folder no: make it");
  expect_refusal("--ranks 1 --summary .", 2, "--summary .: that is a folder");
  EXPECT_EQ(run_command("find " + (folder_ / "runs").string() + " -name '*.jsonl'").output, "");
}

TEST_F(Train, WritesASummaryRecordsAndWeights) {
  const json summary = train_summary("--ranks 2 --name first");
  for (const char* key :
       {"model", "data", "ranks", "strategy", "transport", "device", "steps", "epochs", "samples_per_s", "train_s",
        "comm_s", "comm_exposed_s", "test_accuracy", "test_s", "weights_sha256", "peak_rss_bytes"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_EQ(summary["ranks"], 2);
  EXPECT_EQ(summary["steps"], 8);
  EXPECT_EQ(summary["test_samples"], 101);  // each exactly once, though two ranks shared them
  EXPECT_EQ(summary["samples"], 256);

  std::ifstream records(folder_ / "runs/first/records.jsonl");
  std::vector<std::string> kinds;
  for (std::string line; std::getline(records, line);) kinds.push_back(json::parse(line).at("record"));
  EXPECT_EQ(kinds, (std::vector<std::string>{"run", "plan", "epoch", "explain", "summary"}));
  const SafetensorsFile weights(folder_ / "runs/first/model.safetensors");
  EXPECT_NE(weights.find("conv1.weight"), nullptr);
}

TEST_F(Train, EndsWithTheSameWeightsUnderEveryStrategy) {
  const json bsp = train_summary("--ranks 2 --strategy bsp")["weights_sha256"];
  for (const char* strategy :
       {"wfbp", "buckets --bucket-mb 0.1 --first-bucket-mb 0.01", "fusion", "mgwfbp",
        "bytescheduler --partition-mb 0.5", "bytescheduler --partition-mb 0", "dear --bucket-mb 1", "zero1"})
    EXPECT_EQ(train_summary(std::string("--ranks 2 --strategy ") + strategy)["weights_sha256"], bsp) << strategy;
  EXPECT_NE(train_summary("--ranks 2 --strategy bsp --seed 2")["weights_sha256"], bsp);
}

TEST_F(Train, ChoosesItsStrategyItselfAndPredictsOthersFromWhatItMeasured) {
  // Links on which a step takes 40 ms at least: windows are then so short that rounds fit into half of the run.
  const std::string slow = "--ranks 2 --batch 4 --train-size 3000 --no-eval --link-gbps 1 ";
  const json chosen = train_summary(slow + "--steps 400 --name chosen --strategy auto");
  const json expected = train_summary("--ranks 2 --batch 4 --train-size 3000 --no-eval --steps 400 --strategy bsp");
  EXPECT_EQ(chosen["weights_sha256"], expected["weights_sha256"]);
  EXPECT_NE(chosen["strategy_used"], "auto");
  train_summary(slow + "--steps 20 --name fixed --strategy bsp");
  EXPECT_NE(read_file(folder_ / "runs/chosen/records.jsonl").find("\"search\""), std::string::npos);
  const CommandResult predicted =
      run_command(std::string(TUTTI_BINARY) + " calibrate --rows " + (folder_ / "runs").string());
  EXPECT_EQ(predicted.exit_code, 0) << predicted.output;
  for (const char* part : {"mean error", "bsp", "auto over"})
    EXPECT_NE(predicted.output.find(part), std::string::npos) << "no '" << part << "' in:\n" << predicted.output;
}

TEST_F(Train, ReportsEpochsWhileTransfersCrossThem) {
  const json bsp = train_summary("--ranks 2 --no-eval --steps 25")["weights_sha256"];
  for (const char* strategy : {"bytescheduler --partition-mb 0.1", "dear --bucket-mb 0.1", "zero1 --bucket-mb 0.1"})
    EXPECT_EQ(train_summary(std::string("--ranks 2 --no-eval --steps 25 --checkpoint-minutes 0.001 --strategy ") +
                            strategy)["weights_sha256"],
              bsp)
        << strategy;
}

TEST_F(Train, KeepsAShareOfTheOptimizerStatePerRankUnderZero1AndResumes) {
  const json plain = train_summary("--ranks 2 --steps 14 --optimizer adam");
  const json sharded =
      train_summary("--ranks 2 --steps 14 --optimizer adam --strategy zero1 --name z --checkpoint-steps 9");
  EXPECT_EQ(sharded["weights_sha256"], plain["weights_sha256"]);
  EXPECT_NEAR(sharded["optimizer_state_bytes"].get<double>() / plain["optimizer_state_bytes"].get<double>(), 0.5, 0.01);
  EXPECT_EQ(train_summary("--ranks 2 --steps 14 --optimizer adam --strategy dear --resume z")["weights_sha256"],
            plain["weights_sha256"]);
}

TEST_F(Train, CountsEverySampleOfAnUnevenLastBatchOnce) {
  // 300 samples: nine steps of 32, and 12 left over for the tenth.
  const json summary = train_summary("--ranks 2 --steps 0 --epochs 1 --test-size 3");
  EXPECT_EQ(summary["steps"], 10);
  EXPECT_EQ(summary["samples"], 300);
  EXPECT_EQ(summary["test_samples"], 3);
}

TEST_F(Train, ContinuesFromACheckpointToTheSameWeights) {
  const json whole =
      train_summary("--ranks 2 --steps 14 --optimizer adam --schedule cosine --warmup 3")["weights_sha256"];
  // Steps 1 to 6 of 14: what a run that was stopped there has left behind. 10 steps make an epoch, so it crosses one.
  train_summary(
      "--ranks 2 --steps 14 --optimizer adam --schedule cosine --warmup 3 --name stopped --checkpoint-steps 6 "
      "--keep-checkpoints 9");
  remove_tree(folder_ / "runs/stopped/checkpoints/step-0000000012");
  EXPECT_EQ(
      train_summary(
          "--ranks 2 --steps 14 --optimizer adam --schedule cosine --warmup 3 --resume stopped")["weights_sha256"],
      whole);
}

TEST_F(Train, ContinuesAfterKill9ToTheSameWeights) {
  const fs::path pid_file = folder_ / "pid", runs = folder_ / "runs";
  std::thread run([&] {
    run_command("cd " + folder_.string() + " && echo $$ > pid && exec " +
                command("--ranks 2 --steps 100000 --name killed --checkpoint-steps 5"));
  });
  wait_for([&] { return fs::exists(runs / "killed/checkpoints/step-0000000010"); });
  ASSERT_TRUE(fs::exists(runs / "killed/checkpoints")) << "the run made no checkpoint";
  run_command("kill -9 $(cat " + pid_file.string() + ")");
  run.join();
  // Whatever step it had come to, the newest whole checkpoint is below it; step 10 itself may be gone by now.
  int64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(runs / "killed/checkpoints"))
    if (entry.path().filename().string().rfind("step-", 0) == 0)
      newest = std::max<int64_t>(newest, std::stoll(entry.path().filename().string().substr(5)));
  const std::string steps = "--ranks 2 --steps " + std::to_string(newest + 7);
  EXPECT_EQ(train_summary(steps + " --resume killed")["weights_sha256"], train_summary(steps)["weights_sha256"]);
}

TEST_F(Train, EndsWithAMessageWhenARankIsKilled) {
  const fs::path pid_file = folder_ / "pid";
  CommandResult result;
  std::thread run([&] {
    result = run_command("cd " + folder_.string() + " && echo $$ > pid && exec " +
                         command("--ranks 3 --steps 100000 --name killed --checkpoint-steps 1"));
  });
  wait_for([&] { return fs::exists(folder_ / "runs/killed/checkpoints/step-0000000002"); });
  // The youngest child of the launcher is its last rank.
  run_command("read pid < " + pid_file.string() + "; read ranks < /proc/$pid/task/$pid/children; kill -9 ${ranks##* }");
  run.join();
  EXPECT_EQ(result.exit_code, 128 + 9) << result.output;
  EXPECT_NE(result.output.find("rank 2 of 3 was killed by signal 9"), std::string::npos) << result.output;
  // The others were in a transfer or at a checkpoint; either way they say where.
  EXPECT_NE(result.output.find("rank 0/3, "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("has died"), std::string::npos) << result.output;
}

TEST_F(Train, ThroughParameterServersEndsWithTheSameWeights) {
  const json expected = train_summary("--ranks 2")["weights_sha256"];
  for (const char* through : {"--strategy bsp-ps", "--strategy wfbp-ps --servers 2 --partition-mb 1",
                              "--strategy bytescheduler-ps --servers 1", "--strategy wfbp-ps --node-ranks 2"})
    EXPECT_EQ(train_summary(std::string("--ranks 2 ") + through)["weights_sha256"], expected) << through;
}

TEST_F(Train, EndsWithAMessageWhenAParameterServerIsKilled) {
  const fs::path pid_file = folder_ / "pid";
  CommandResult result;
  std::thread run([&] {
    result =
        run_command("cd " + folder_.string() + " && echo $$ > pid && exec " +
                    command("--ranks 2 --strategy wfbp-ps --servers 1 --steps 100000 --name k --checkpoint-steps 5"));
  });
  wait_for([&] { return fs::exists(folder_ / "runs/k/checkpoints/step-0000000005"); });
  // The youngest child of the launcher is its server.
  run_command("read pid < " + pid_file.string() + "; read ranks < /proc/$pid/task/$pid/children; kill -9 ${ranks##* }");
  run.join();
  EXPECT_EQ(result.exit_code, 128 + 9) << result.output;
  EXPECT_NE(result.output.find("push_pull of transfer"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("parameter server 0 (pid "), std::string::npos) << result.output;
}

TEST_F(Train, TakesItsPlaceFromATorchrunEnvironment) {
  const std::string variables =
      "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 MASTER_ADDR=localhost MASTER_PORT=" + std::to_string(::getpid());
  const json alone = train_summary("--ranks 2")["weights_sha256"];
  const CommandResult result =
      run_command("cd " + folder_.string() + " && (RANK=1 LOCAL_RANK=1 " + variables + " " + command("") +
                  " & RANK=0 LOCAL_RANK=0 " + variables + " " + command("--summary s.json") + "; wait)");
  ASSERT_TRUE(fs::exists(folder_ / "s.json")) << result.output;
  EXPECT_EQ(json::parse(read_file(folder_ / "s.json"))["weights_sha256"], alone);
}

TEST_F(Train, WithLambIsTheSameUnderEveryStrategyAndAfterAResume) {
  const json plain = train_summary("--ranks 2 --steps 14 --optimizer lamb --strategy bsp")["weights_sha256"];
  const CommandResult sharded =
      train("--ranks 2 --steps 14 --optimizer lamb --strategy zero1 --name z --checkpoint-steps 9");
  EXPECT_NE(sharded.output.find("an optimizer that works on whole tensors"), std::string::npos) << sharded.output;
  EXPECT_EQ(train_summary("--ranks 2 --steps 14 --optimizer lamb --strategy dear --resume z")["weights_sha256"], plain);
}

TEST_F(Train, HasAReferencePageOfAllItsOptions) {
  const CommandResult page = run_command(std::string(TUTTI_BINARY) + " train --help-markdown");
  EXPECT_EQ(page.output, read_file(TUTTI_SOURCE_DIR "/docs/reference/train-options.md"))
      << "write it anew: tutti train --help-markdown > docs/reference/train-options.md";
}

TEST_F(Train, RefusesImpossibleOptionsOnceAndWithExitCode2) {
  expect_refusal("--ranks 0", 2, "--ranks is 0: it must be from 1 to 64");
  expect_refusal("--ranks 2 --strategy wfpb", 2, "did you mean 'wfbp'?");
  expect_refusal("--ranks 2 --model mnist-cn", 2, "did you mean 'mnist-cnn'?");
  expect_refusal("--ranks 2 --data mnst", 2, "did you mean 'mnist'?");
  expect_refusal("--ranks 2 --optimizer adm", 2, "unknown optimizer 'adm'");
  expect_refusal("--batch 0", 2, "--batch is 0");
  expect_refusal("--batch abc", 2, "--batch: 'abc' is no whole number");
  expect_refusal("--seed -1", 2, "--seed: '-1' is no whole number of 0 or more");
  expect_refusal("--ranks 2 --servers 1", 2, "strategy buckets uses none; those that do end in -ps");
  expect_refusal("--ranks 1 --servers 1 --strategy bsp-ps", 2, "servers add up what two or more ranks push");
  expect_refusal("--ranks 2 --wire topk --strategy dear", 2, "try buckets or mgwfbp");
  expect_refusal("--ranks 2 --wire topk --topk-ratio 2", 2, "--topk-ratio is 2");
  expect_refusal("--stratgy bsp", 2, "did you mean '--strategy'?");
  if (!TUTTI_HAS_CUDA) expect_refusal("--device cuda", 2, "--device cpu");
  EXPECT_EQ(count(train("--ranks 2 --strategy wfpb").output, "unknown strategy"), 1);
}

TEST_F(Train, ReportsMissingDataOnceThoughEveryRankMissesIt) {
  const CommandResult result = train("--ranks 3 --train-size 0 --test-size 0 --data mnist --data-folder nowhere");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_EQ(count(result.output, "nowhere"), 1) << result.output;
}

TEST_F(Train, RefusesDamagedAndForeignCheckpoints) {
  ASSERT_EQ(train("--name good --checkpoint-steps 8").exit_code, 0);
  const fs::path checkpoint = folder_ / "runs/good/checkpoints/step-0000000008";
  expect_refusal("--resume nothing", 1, "no checkpoint at 'nothing'");
  expect_refusal("--resume good --optimizer adam", 1, "was made with optimizer 'sgd'");

  const std::string weights = read_file(checkpoint / "model.safetensors"), state = read_file(checkpoint / "state.json");
  std::string changed = weights;
  changed[changed.size() - 5] ^= 1;
  write_file_atomically(checkpoint / "model.safetensors", changed);
  expect_refusal("--ranks 2 --resume good", 1, "is damaged");
  write_file_atomically(checkpoint / "model.safetensors", weights.substr(0, weights.size() / 2));
  expect_refusal("--resume good", 1, "is damaged");
  write_file_atomically(checkpoint / "model.safetensors", weights);
  write_file_atomically(checkpoint / "state.json", state.substr(0, state.size() / 2));
  expect_refusal("--resume good", 1, "is damaged");

  json other = json::parse(state);
  other["sha256"].erase("state.json");  // or it would be refused as damaged
  other["options"]["model"] = "lenet";
  write_file_atomically(checkpoint / "state.json", other.dump());
  expect_refusal("--resume good --model mnist-cnn", 1,
                 "belongs to another model: it was made by 'lenet', this is 'mnist-cnn'");
}

TEST_F(Train, RefusesToOverwriteARun) {
  ASSERT_EQ(train("--name once --no-eval").exit_code, 0);
  expect_refusal("--name once", 2, "exists already");
}

TEST_F(Train, SaysSoWhenTheRunFolderCannotBeWritten) {
  std::ofstream(folder_ / "file") << "not a folder";
  expect_refusal("--ranks 2 --runs " + (folder_ / "file").string(), 1, "cannot create the folder");
}

TEST_F(Train, LeavesValidRecordsWhenTheDiskIsFull) {
  // A small disk of its own, in a mount namespace of its own; only root may do that.
  const fs::path disk = folder_ / "disk";
  fs::create_directories(disk);
  const std::string mount = "unshare --mount sh -c 'mount -t tmpfs -o size=3m tmpfs " + disk.string() + " && ";
  if (run_command(mount + "true'").exit_code != 0) GTEST_SKIP() << "this user may not mount a small disk";
  const CommandResult result =
      run_command(mount + command("--ranks 2 --runs " + disk.string() + " --name full --checkpoint-steps 2") +
                  "; code=$?; cp -r " + disk.string() + "/full " + folder_.string() + "; exit $code'");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("cannot save a checkpoint"), std::string::npos) << result.output;
  std::ifstream records(folder_ / "full/records.jsonl");
  int lines = 0;
  for (std::string line; std::getline(records, line); ++lines) EXPECT_TRUE(json::accept(line)) << line;
  EXPECT_GT(lines, 0);
  EXPECT_TRUE(fs::is_empty(folder_ / "full/checkpoints")) << "a half-written checkpoint was left";
}

TEST(Program, SuggestsCommandsAndShowsHelp) {
  const CommandResult misspelt = run_command(std::string(TUTTI_BINARY) + " trian");
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_NE(misspelt.output.find("did you mean 'train'?"), std::string::npos) << misspelt.output;
  const CommandResult help = run_command(std::string(TUTTI_BINARY) + " train --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("wfbp: one all-reduce per tensor"), std::string::npos) << help.output;
}

TEST_F(Train, RefusesNamesThatAreNoFolderOfItsOwnBeforeItTrains) {
  expect_refusal("--ranks 1 --name \"$(printf 'a\\377')\"", 2, "its bytes are no UTF-8 text");
  expect_refusal("--ranks 1 --name ../elsewhere", 2, "cannot name a run's folder: it has a '/' in it");
  expect_refusal("--ranks 1 --name ..", 2, "cannot name a run's folder");
  expect_refusal("--ranks 1 --data-path \"$(printf 'a\\377')\"", 2, "--data-path");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Train, RefusesHostsThatSshWouldTakeForOptions) {
  expect_refusal("--hosts -oProxyCommand=x", 2, "'-oProxyCommand=x' does not read like HOST");
  expect_refusal("--hosts=a:2,-oProxyCommand=x:2", 2, "'-oProxyCommand=x:2' does not read like HOST");
  std::ofstream(folder_ / "recipe.yaml") << "hosts: '-oProxyCommand=touch pwned'\n";
  expect_refusal("--recipe recipe.yaml", 2, "does not read like HOST");
  EXPECT_FALSE(fs::exists(folder_ / "pwned"));
}

TEST_F(Train, FoldersOfRunsAreTheUsersOwnAlsoUnderALaxUmask) {
  const CommandResult result = run_command("cd " + folder_.string() + " && umask 000 && " +
                                           command("--ranks 2 --name own --checkpoint-steps 4"));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto others = fs::perms::group_all | fs::perms::others_all;
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_ / "runs")) {
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 5);
  EXPECT_EQ(fs::status(folder_ / "runs").permissions() & others, fs::perms::none);
}

TEST_F(Train, RefusesSwitchesThatAreNeitherOnNorOffAndNumbersThatNoOptionHolds) {
  expect_refusal("--no-eval=yess", 2, "'yess' is neither true nor false");
  expect_refusal("--scale-lr=2x", 2, "'2x' is neither true nor false");
  expect_refusal("--bucket-mb=nan", 2, "--bucket-mb");
  expect_refusal("--bucket-mb=1e300", 2, "--bucket-mb");
}

}  // namespace
}  // namespace tutti
