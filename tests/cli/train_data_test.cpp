// What data sets promise, seen from whole runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/idx_files.h"
#include "support/command.h"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class TrainData : public ::testing::Test {
 protected:
  /// 48 training and 16 test images with a bar each, whose place is the label.
  TrainData() {
    const auto bars = [](int count, std::string& pixels, std::string& labels) {
      for (int i = 0; i < count; ++i) {
        std::string image(784, '\0');
        for (int row = 4; row < 24; ++row)
          image.replace(static_cast<size_t>(row * 28 + 4 + 2 * (i % 10)), 2, "\xff\xff");
        pixels += image;
        labels += static_cast<char>(i % 10);
      }
    };
    for (const auto& [stem, count] : {std::pair{"train", 48}, std::pair{"t10k", 16}}) {
      std::string pixels;
      std::string labels;
      bars(count, pixels, labels);
      folder_.write(std::string(stem) + "-images-idx3-ubyte", idx_images(static_cast<uint32_t>(count), 28, 28, pixels));
      folder_.write(std::string(stem) + "-labels-idx1-ubyte", idx_labels(static_cast<uint32_t>(count), labels));
    }
  }

  /// Runs a small training; returns its weights' hash.
  std::string weights_after(const std::string& arguments) const {
    const fs::path summary = folder_.path() / "summary.json";
    const CommandResult result =
        run_command("cd " + folder_.path().string() +
                    " && " TUTTI_BINARY
                    " train --data mnist --data-folder . --batch 16 --ranks 1 --threads 1 --device cpu --no-eval "
                    "--summary summary.json " +
                    arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.exit_code == 0 ? nlohmann::json::parse(read_file(summary)).at("weights_sha256").get<std::string>()
                                 : "failed";
  }

  TempFolder folder_;
};

TEST_F(TrainData, AugmentedIsTheSameWithAnyNumberOfWorkersAndAfterAResume) {
  const std::string straight = weights_after("--augment --steps 8 --workers 0");
  EXPECT_EQ(weights_after("--augment --steps 8 --workers 3"), straight);
  weights_after("--augment --steps 5 --checkpoint-steps 5 --name first");  // in the middle of the second epoch
  EXPECT_EQ(weights_after("--augment --steps 8 --resume first"), straight);
  EXPECT_NE(weights_after("--steps 8"), straight);
}

TEST_F(TrainData, OptionsOfOtherDataAreRefused) {
  const CommandResult result = run_command(TUTTI_BINARY " train --data digits --tokens 5 --ranks 1 --device cpu");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("--tokens has no meaning for --data digits: it is for sst5"));
}

TEST(TrainOwnData, TakesTheModelThatSuitsTheDataAndRecordsItsClasses) {
  const TempFolder folder;
  std::string table = "size,kind\n";
  for (int i = 0; i < 40; ++i) table += std::to_string(i) + (i < 20 ? ",small\n" : ",large\n");
  folder.write("table.csv", table);
  const CommandResult result =
      run_command("cd " + folder.path().string() +
                  " && " TUTTI_BINARY
                  " train --data csv --data-path table.csv --batch 8 --epochs 2 --ranks 1 --threads 1 --device cpu "
                  "--summary summary.json --name sizes");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Training mlp"));
  const auto summary = nlohmann::json::parse(read_file(folder.path() / "summary.json"));
  EXPECT_EQ(summary.at("config").at("class_names"), (std::vector<std::string>{"large", "small"}));
  EXPECT_EQ(summary.at("model"), "mlp");

  folder.write("new.csv", "colour,size\n\"dark, red\",1.5\nblue,38\nblue,tiny\nblue,\n");
  const CommandResult predicted =
      run_command("cd " + folder.path().string() + " && " TUTTI_BINARY " predict sizes new.csv --top 1 --csv");
  EXPECT_EQ(predicted.exit_code, 1);
  EXPECT_THAT(predicted.output, HasSubstr("new.csv:2,small,"));
  EXPECT_THAT(predicted.output, HasSubstr("new.csv:3,large,"));
  EXPECT_THAT(predicted.output, HasSubstr("tutti: new.csv:4: column 'size' is 'tiny', and numbers were trained on"));
  EXPECT_THAT(predicted.output, HasSubstr("tutti: new.csv:5: column 'size' has no value"));
  const CommandResult other =
      run_command("cd " + folder.path().string() + " && printf 'colour\\nred\\n' > other.csv && " +
                  TUTTI_BINARY " predict sizes other.csv");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("other.csv:2: there is no column 'size', which was trained on"));
}

}  // namespace
}  // namespace tutti::test
