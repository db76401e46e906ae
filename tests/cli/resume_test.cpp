// Runs that are stopped, go on, go back and go wrong: real processes, real files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    remove_tree(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { remove_tree(folder_); }

  /// 300 samples: with two ranks an epoch has nine steps of 32 and one of 12.
  static std::string small() {
    return "--train-size 300 --test-size 40 --batch 16 --threads 1 --device cpu --epochs 3 --ranks 2 ";
  }
  static std::string command(const std::string& arguments) { return TUTTI_BINARY " train " + arguments; }
  CommandResult train(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " + command(arguments));
  }
  CommandResult must_train(const std::string& arguments) const {
    CommandResult result = train(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result;
  }
  fs::path run(const std::string& name) const { return folder_ / "runs" / name; }
  fs::path checkpoint(const std::string& run_name, int step) const {
    return run(run_name) / fmt::format("checkpoints/step-{:010}", step);
  }
  /// All records of a kind, in order.
  std::vector<nlohmann::json> records(const std::string& name, const std::string& kind) const {
    std::vector<nlohmann::json> found;
    std::ifstream file(run(name) / "records.jsonl");
    for (std::string line; std::getline(file, line);)
      if (auto record = nlohmann::json::parse(line); record.at("record") == kind) found.push_back(std::move(record));
    return found;
  }
  std::string weights(const std::string& name) const {
    const auto summaries = records(name, "summary");
    return summaries.empty() ? "none of " + name : summaries.back().at("weights_sha256").get<std::string>();
  }
  /// Leaves the run as one that was killed after the checkpoint of this step.
  void forget_after(const std::string& name, int step) const {
    for (const auto& entry : fs::directory_iterator(run(name) / "checkpoints"))
      if (entry.path() > checkpoint(name, step)) remove_tree(entry.path());
  }
  /// Starts a command, sends a signal to its launcher when `condition` holds, and returns how it ended.
  CommandResult train_and_signal(const std::string& arguments, const std::string& signal,
                                 const std::function<bool()>& condition) const {
    CommandResult result;
    std::thread thread(
        [&] { result = run_command("cd " + folder_.string() + " && echo $$ > pid && exec " + command(arguments)); });
    for (int i = 0; i < 2400 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run_command("kill -" + signal + " $(cat " + (folder_ / "pid").string() + ")");
    thread.join();
    return result;
  }
  static void flip_a_bit(const fs::path& file) {
    std::string content = read_file(file);
    content[content.size() - 5] ^= 1;
    write_file_atomically(file, content);
  }
  static testing::AssertionResult says(const CommandResult& result, const std::string& text) {
    if (result.output.find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "no '" << text << "' in:\n" << result.output;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("tutti-resume-test-" + std::to_string(::getpid()));
};

TEST_F(Resume, OfANameAloneContinuesThatRunWithItsOwnOptions) {
  must_train(small() + "--lr 0.02 --schedule cosine --warmup 4 --checkpoint-steps 4 --keep-checkpoints 9 --name a");
  const std::string whole = weights("a");
  forget_after("a", 12);
  const CommandResult resumed = must_train("--resume a");
  EXPECT_TRUE(says(resumed, "Resumed at step 12"));
  EXPECT_TRUE(says(resumed, "Done: 18 steps"));
  EXPECT_FALSE(says(resumed, "note:"));
  EXPECT_EQ(weights("a"), whole);
  EXPECT_TRUE(fs::exists(checkpoint("a", 28))) << "checkpoints are off";
  const CommandResult longer = must_train("--resume a --epochs 4");
  EXPECT_TRUE(says(longer, "note: epochs was 3 when the checkpoint was made and is 4 now"));
  EXPECT_TRUE(says(longer, "Done: 12 steps"));
  EXPECT_TRUE(says(must_train("--resume a"), "the run has come to its end, 4 epochs: --epochs makes it longer"));
}

TEST_F(Resume, WithAnotherNumberOfRanksEndsAfterTheSameSamples) {
  must_train(small() + "--schedule cosine --checkpoint-steps 6 --keep-checkpoints 9 --name a");
  forget_after("a", 6);
  const CommandResult resumed = must_train("--resume a --ranks 4 --log-every 1");
  EXPECT_TRUE(says(resumed, "a step has 64 samples now, and had 32"));
  // 300 - 6 × 32 samples are left of the first epoch, in two steps; then twice five.
  EXPECT_TRUE(says(resumed, "Done: 12 steps"));
  const auto epochs = records("a", "epoch");
  ASSERT_GE(epochs.size(), 6U);  // three from before
  int64_t samples = 0;
  for (const auto& rank : epochs[3].at("ranks")) samples += rank.at("samples").get<int64_t>();
  EXPECT_EQ(samples, 300 - 6 * 32);
  EXPECT_EQ(epochs.back().at("epoch"), 3);
  const double last_rate = records("a", "progress").back().at("lr");
  EXPECT_NEAR(last_rate, 0, 1e-12) << "the schedule is not at its end";
}

TEST_F(Resume, OfAnOlderCheckpointSetsTheNewerOnesAsideAndGoesOnFromThereLater) {
  must_train(small() + "--checkpoint-steps 8 --keep-checkpoints 9 --name a");
  const CommandResult back = must_train("--resume runs/a/checkpoints/step-0000000008 --lr 0.01 --steps 17");
  EXPECT_TRUE(says(back, "set aside as runs/a/checkpoints/abandoned-step-0000000016"));
  EXPECT_TRUE(fs::exists(run("a") / "checkpoints/abandoned-step-0000000024/model.safetensors"));
  EXPECT_FALSE(fs::exists(checkpoint("a", 24)));
  EXPECT_TRUE(says(must_train("--resume a --steps 18"), "Resumed at step 16"));
}

TEST_F(Resume, PassesOverADamagedCheckpointAloud) {
  must_train(small() + "--checkpoint-steps 8 --keep-checkpoints 9 --name a");
  const std::string whole = weights("a");
  flip_a_bit(checkpoint("a", 24) / "optimizer.safetensors");
  write_file_atomically(checkpoint("a", 16) / "state.json", "{\"form");
  fs::create_directories(run("a") / "checkpoints/writing-step-0000000032");
  const CommandResult one = train("--resume runs/a/checkpoints/step-0000000024");
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_TRUE(says(one, "is damaged"));
  const CommandResult resumed = must_train(small() + "--checkpoint-steps 8 --name a --auto-resume");
  EXPECT_TRUE(says(resumed, "note: the checkpoint runs/a/checkpoints/step-0000000024 is damaged"));
  EXPECT_TRUE(says(resumed, "going on from the one before it, runs/a/checkpoints/step-0000000008"));
  EXPECT_EQ(weights("a"), whole);
  EXPECT_FALSE(fs::exists(run("a") / "checkpoints/writing-step-0000000032")) << "a leftover of a killed save";
}

TEST_F(Resume, IsTheSameUnderCompressionThatOwesGradients) {
  for (const char* wire : {"topk", "sign"}) {
    const std::string name = wire;
    must_train(small() + "--steps 9 --bucket-mb 0.2 --checkpoint-steps 2 --keep-checkpoints 9 --name " + name +
               " --wire " + wire);
    const std::string whole = weights(name);
    for (const int step : {6, 2}) {
      forget_after(name, step);
      must_train("--resume " + name);
      EXPECT_EQ(weights(name), whole) << wire << " from step " << step;
    }
  }
  EXPECT_TRUE(says(must_train("--resume topk --ranks 1 --steps 12"), "Done")) << "one rank sends nothing";
  EXPECT_TRUE(says(must_train("--resume sign --ranks 3 --steps 12"), "left out of their messages: it is dropped"));
}

TEST_F(Resume, OfARunThatIsAtWorkIsRefused) {
  CommandResult second, third;
  const CommandResult first = train_and_signal(small() + "--epochs 10000 --checkpoint-steps 5 --name a", "TERM", [&] {
    if (!fs::exists(checkpoint("a", 5)) && !fs::exists(checkpoint("a", 10))) return false;
    second = train("--resume a");
    third = train(small() + "--name a");
    return true;
  });
  EXPECT_EQ(first.exit_code, 85) << first.output;
  for (const CommandResult& refused : {second, third}) {
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(says(refused, "the run runs/a is in use by process "));
  }
  EXPECT_EQ(records("a", "run").size(), 1U);
}

TEST_F(Resume, MakesTheTestThatASignalInterrupted) {
  // A step, then a test that takes long.
  const std::string arguments =
      "--train-size 32 --test-size 12000 --batch 16 --eval-batch 20 --threads 1 --device cpu --epochs 1 --ranks 2 "
      "--checkpoint-steps 100 ";
  must_train(arguments + "--name whole");
  const CommandResult stopped = train_and_signal(arguments + "--name a", "TERM", [&] {
    return fs::exists(run("a") / "records.jsonl") && !records("a", "run").empty();
  });
  ASSERT_EQ(stopped.exit_code, 85) << stopped.output;
  EXPECT_TRUE(says(stopped, "after saving step 1"));
  EXPECT_TRUE(records("a", "epoch").empty());
  must_train("--resume a");
  ASSERT_EQ(records("a", "epoch").size(), 1U);
  const auto epoch = records("a", "epoch")[0], expected = records("whole", "epoch")[0];
  for (const char* key : {"epoch", "step", "test_samples", "test_accuracy", "train_loss"})
    EXPECT_EQ(epoch.at(key), expected.at(key)) << key;
  EXPECT_EQ(weights("a"), weights("whole"));
  must_train("--resume a");
  EXPECT_EQ(records("a", "epoch").size(), 1U) << "reported twice";
}

TEST_F(Resume, LooksForSignalsAfterEverySlowStep) {
  // Steps of about a second: ten of them would take too long.
  const CommandResult stopped = train_and_signal(
      small() + "--link-startup-us 1000000 --strategy bsp --checkpoint-steps 100 --name a --steps 8 --no-eval", "TERM",
      [&] { return fs::exists(run("a") / "records.jsonl") && !records("a", "plan").empty(); });
  EXPECT_EQ(stopped.exit_code, 85) << stopped.output;
}

TEST_F(Resume, EndsAtALossThatIsNoNumberAndDoesNotTryAgain) {
  const CommandResult result =
      train(small() + "--lr 1e30 --checkpoint-steps 1 --max-restarts 2 --keep-checkpoints 9 --name a");
  EXPECT_EQ(result.exit_code, 86) << result.output;
  EXPECT_TRUE(says(result, "is not finite at step "));
  EXPECT_TRUE(says(result, "lower --lr"));
  EXPECT_FALSE(says(result, "restart 1"));
  EXPECT_FALSE(fs::exists(run("a") / "model.safetensors"));
  EXPECT_FALSE(fs::exists(checkpoint("a", 3)));
}

/// Three ranks, of which the last computes something else: as if a bit had flipped there.
TEST_F(Resume, NamesTheRankWhoseWeightsDifferAndSavesNothing) {
  for (const char* found_by : {"--checkpoint-steps 4 --no-eval", "--epochs 1"}) {
    std::string ranks = "cd " + folder_.string();
    for (const int rank : {2, 1, 0})
      ranks += fmt::format(
          "{} RANK={} LOCAL_RANK={} WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 GROUP_RANK=0 MASTER_ADDR=localhost "
          "MASTER_PORT={} TUTTI_JOB=resume {} {}",
          rank == 2 ? " && (" : " &", rank, rank, ::getpid(),
          command("--train-size 300 --test-size 40 --batch 16 --threads 1 --device cpu --name a " +
                  std::string(found_by)),
          rank == 2 ? "--lr 0.011" : "--lr 0.01");
    const CommandResult result = run_command(ranks + "; echo code $?; wait)");
    EXPECT_TRUE(says(result, "rank 2 has other weights than the 2 others")) << found_by;
    EXPECT_FALSE(says(result, "Done")) << found_by;
    EXPECT_FALSE(says(result, "code 0")) << found_by;
    EXPECT_TRUE(!fs::exists(run("a") / "checkpoints") || fs::is_empty(run("a") / "checkpoints")) << found_by;
    remove_tree(run("a"));
  }
}

}  // namespace
}  // namespace tutti
