// Train, then test, use and export what was trained: whole commands, as a user would.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/safetensors.h"
#include "data/png_files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class TrainedModels : public testing::Test {
 protected:
  void SetUp() override { make_folders(folder_); }
  void TearDown() override { remove_tree(folder_); }

  CommandResult tutti(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " TUTTI_BINARY " " + arguments);
  }
  nlohmann::json summary(const std::string& run) const {
    std::ifstream file(folder_ / "runs" / run / "records.jsonl");
    nlohmann::json last;
    for (std::string line; std::getline(file, line);) last = nlohmann::json::parse(line);
    return last;
  }
  const fs::path folder_ = fs::temp_directory_path() / ("tutti-trained-models-" + std::to_string(::getpid()));
};

TEST_F(TrainedModels, AreTestedAskedExportedAndTrainedFurther) {
  const std::string small = "--train-size 300 --test-size 60 --batch 16 --threads 1 --device cpu --ranks 2 ";
  const CommandResult trained =
      tutti("train --name first --epochs 5 --keep-best loss --patience 2 --freeze conv1 " + small);
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_NE(trained.output.find("2 of 8 tensors are frozen"), std::string::npos) << trained.output;
  EXPECT_NE(trained.output.find("Best: loss "), std::string::npos) << trained.output;
  const nlohmann::json told = summary("first");
  EXPECT_EQ(told.at("best_metric"), "loss");

  const CommandResult tested = tutti("eval first --json");
  ASSERT_EQ(tested.exit_code, 0) << tested.output;
  const nlohmann::json result = nlohmann::json::parse(tested.output);
  EXPECT_EQ(result.at("test_accuracy"), told.at("test_accuracy"));
  EXPECT_NEAR(result.at("test_loss").get<double>(), told.at("test_loss").get<double>(), 1e-5);
  EXPECT_EQ(result.at("test_samples"), 60);

  const CommandResult best = tutti("eval first/best --csv scores.csv");
  ASSERT_EQ(best.exit_code, 0) << best.output;
  EXPECT_NE(best.output.find(fmt::format("loss                     {:.4f}", told.at("best_value").get<double>())),
            std::string::npos)
      << best.output;
  EXPECT_EQ(read_file(folder_ / "scores.csv").rfind("class,precision,recall,f1,support,said 0,", 0), 0U);

  if (TUTTI_HAS_PNG != 0) {
    write_file_atomically(folder_ / "grey.png",
                          test::png_file(30, 30, test::PngColour::kGrey, std::string(900, '\x80')));
    write_file_atomically(folder_ / "bad.png", "no picture");
    const CommandResult predicted = tutti("predict first bad.png grey.png nowhere.png --top 1 --csv");
    EXPECT_EQ(predicted.exit_code, 1);
    EXPECT_NE(predicted.output.find("tutti: bad.png: neither a JPEG nor a PNG"), std::string::npos) << predicted.output;
    EXPECT_NE(predicted.output.find("tutti: cannot open nowhere.png"), std::string::npos) << predicted.output;
    EXPECT_NE(predicted.output.find("input,class,probability\ngrey.png,"), std::string::npos) << predicted.output;
  }

  const CommandResult exported = tutti("export first --safetensors first.safetensors --torchscript first.pt");
  EXPECT_EQ(exported.exit_code, 0) << exported.output;
  EXPECT_TRUE(fs::exists(folder_ / "first.pt"));
  const CommandResult nameless = tutti("eval first.safetensors");
  EXPECT_EQ(nameless.exit_code, 2);
  EXPECT_NE(nameless.output.find("say with --model what it was made for"), std::string::npos) << nameless.output;

  const CommandResult tuned = tutti("train --name tuned --steps 2 --weights first --lr 1e-30 --head-lr 0.1 " + small);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.output;
  const SafetensorsFile before(folder_ / "runs/first/model.safetensors"),
      after(folder_ / "runs/tuned/model.safetensors");
  const auto is_changed = [&](const std::string& name) {
    const NamedArray &then = *before.find(name), &now = *after.find(name);
    return std::memcmp(then.data, now.data, then.bytes) != 0;
  };
  EXPECT_FALSE(is_changed("fc1.weight"));
  EXPECT_TRUE(is_changed("fc2.weight"));

  const CommandResult further = tutti("train --name other --steps 1 --weights first/best --strict-weights " + small);
  EXPECT_EQ(further.exit_code, 0) << further.output;
  EXPECT_NE(further.output.find("Weights: 8 tensors from runs/first/best/model.safetensors"), std::string::npos)
      << further.output;
}

TEST_F(TrainedModels, GoOnCountingTestsWithoutABetterOneWhenTheRunIsResumed) {
  // Learning rates this small change nothing: the first test stays the best.
  const std::string command =
      "train --name still --train-size 64 --test-size 20 --batch 16 --threads 1 --device cpu --ranks 1 --lr 1e-12 "
      "--keep-best accuracy --epochs 9 --checkpoint-steps 4 ";
  const CommandResult two = tutti(command + "--epochs 2");
  ASSERT_EQ(two.exit_code, 0) << two.output;
  const CommandResult resumed = tutti("train --resume still --epochs 9 --patience 3");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  const nlohmann::json told = summary("still");
  EXPECT_EQ(told.at("best_epoch"), 1);
  EXPECT_EQ(told.at("epochs"), 4) << "one test without a better one before, two after";
  EXPECT_EQ(told.at("is_stopped_early"), true);
  EXPECT_NE(resumed.output.find("Ended early: 3 tests without a better one"), std::string::npos) << resumed.output;
}

}  // namespace
}  // namespace tutti
