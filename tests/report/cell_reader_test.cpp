#include "report/cell_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/folder_lock.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

class CellReader : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-cells-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "sweep");
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  CellSet read(const std::string& name) const { return read_cells((folder_ / name).string(), folder_); }
  std::string error_of(const std::string& name) const {
    try {
      read(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

std::string cell_line(const std::string& id, const json& more = json::object()) {
  json record = {{"record", "cell"}, {"cell", id},           {"repeat", 1},
                 {"status", "done"}, {"source", "measured"}, {"config", {{"model", "resnet18"}, {"ranks", 2}}}};
  record.update(more);
  return record.dump() + "\n";
}

TEST_F(CellReader, TakesTheLastAttemptOfEachCellAndListsFailures) {
  write("sweep/cells.jsonl", cell_line("a", {{"status", "failed"}, {"error", "no room"}}) + cell_line("b") +
                                 cell_line("a", {{"run_s", 5}}) + cell_line("c", {{"status", "failed"}}));
  const CellSet set = read("sweep");
  ASSERT_EQ(set.cells.size(), 3u);
  EXPECT_EQ(set.cells[0].id, "a");
  EXPECT_FALSE(set.cells[0].is_failed);
  EXPECT_DOUBLE_EQ(set.cells[0].run_s, 5);
  EXPECT_TRUE(set.cells[2].is_failed);
  EXPECT_EQ(set.cells[1].folder, (folder_ / "sweep/cells/b").string());
}

TEST_F(CellReader, TellsARunThatGoesOnFromOneThatWasStopped) {
  fs::create_directories(folder_ / "half");
  write("half/records.jsonl",
        R"({"record":"run","config":{"model":"mnist-cnn","ranks":2,"batch":8},"nodes":[{"host":"n0","ranks":[0,1]}]})"
        "\n"
        R"({"record":"progress","step":10,"epoch":0,"data_per_s":500,"loss":1.5})"
        "\n");
  EXPECT_TRUE(read("half").cells.at(0).is_failed);
  const FolderLock lock(folder_ / "half");  // as the run's rank 0 holds it
  const CellSet set = read("half");
  const Cell& cell = set.cells.at(0);
  EXPECT_FALSE(cell.is_failed);
  EXPECT_TRUE(cell.is_running);
  EXPECT_EQ(cell.run, "half");
  ASSERT_EQ(cell.epochs.size(), 1u);
  EXPECT_EQ(cell.epochs[0].rates.at(0).step, 10);
  EXPECT_THAT(set.notes, Contains(HasSubstr("half is still going on")));
}

TEST_F(CellReader, KeepsRepeatsOfACellApart) {
  write("sweep/cells.jsonl", cell_line("a") + cell_line("a", {{"repeat", 2}}));
  EXPECT_EQ(read("sweep").cells.size(), 2u);
}

TEST_F(CellReader, CountsPendingCells) {
  write("sweep/cells.jsonl", cell_line("a"));
  write(
      "sweep/sweep.json",
      json({{"title", "Two cells"}, {"command", "tutti bench two"}, {"cells", {{{"id", "a"}}, {{"id", "b"}}}}}).dump());
  const CellSet set = read("sweep");
  EXPECT_EQ(set.title, "Two cells");
  EXPECT_EQ(set.command, "tutti bench two");
  EXPECT_THAT(set.notes, Contains(HasSubstr("1 of 2 cells of Two cells are pending")));
}

TEST_F(CellReader, ReadsASweepThatWasStoppedBeforeItsFirstCell) {
  write("sweep/sweep.json", json({{"name", "two"}, {"cells", {{{"id", "a"}}, {{"id", "b"}}}}}).dump());
  EXPECT_THAT(read("sweep").notes, Contains(HasSubstr("2 of 2 cells")));
}

TEST_F(CellReader, SkipsALastLineThatIsCutOffAnywhere) {
  const std::string last = cell_line("b", {{"step_s", {0.5, 0.25}}, {"error", "a \"quoted\" text"}});
  for (std::size_t length = 1; length < last.size() - 1; ++length) {
    write("sweep/cells.jsonl", cell_line("a") + last.substr(0, length));
    const CellSet set = read("sweep");
    ASSERT_EQ(set.cells.size(), 1u) << length;
    ASSERT_THAT(set.notes, Contains(HasSubstr("the last line is cut off"))) << length;
  }
  write("sweep/cells.jsonl", cell_line("a") + last.substr(0, last.size() - 1));  // only the newline is missing
  EXPECT_EQ(read("sweep").cells.size(), 2u);
}

TEST_F(CellReader, NamesTheLineThatIsDamaged) {
  for (const char* line : {"{\"record\":\"cell\",\"cell\":\"x", "[1, 2]", "", "{\"step\":1}", "{\"record\":\"cell\"}}",
                           "{\"record\":\"cell\",\"cell\" \"x\"}", "{\"record\":\"cell\",\"a\":tru}"}) {
    write("sweep/cells.jsonl", cell_line("a") + line + "\n" + cell_line("b"));
    EXPECT_THAT(error_of("sweep"), HasSubstr("cells.jsonl, line 2: ")) << line;
  }
}

TEST_F(CellReader, NamesTheFieldThatIsOfTheWrongKind) {
  const auto error_with = [this](const json& field) {
    write("sweep/cells.jsonl", cell_line("a") + cell_line("b", field));
    return error_of("sweep");
  };
  EXPECT_THAT(error_with({{"run_s", "soon"}}), HasSubstr("line 2: its \"run_s\" is 'soon'; it should be a number"));
  EXPECT_THAT(error_with({{"step_s", {0.1, "x"}}}), HasSubstr("\"step_s\""));
  EXPECT_THAT(error_with({{"epochs", 3}}), HasSubstr("its \"epochs\" is 3; it should be a list"));
  EXPECT_THAT(error_with({{"config", "none"}}), HasSubstr("its \"config\" is \"none\"; it should be an object"));
  EXPECT_THAT(error_with({{"baseline", 1}}), HasSubstr("true or false"));
  EXPECT_THAT(error_with({{"steps", 1e300}}), HasSubstr("whole number"));
  EXPECT_THAT(error_with({{"source", "guessed"}}), HasSubstr("'guessed'"));
}

TEST_F(CellReader, ToleratesAbsentNullAndUnknownFields) {
  write("sweep/cells.jsonl",
        cell_line("a", {{"run_s", nullptr}, {"epochs", nullptr}, {"new", {{"x", {1, "y", true}}}}}) +
            "{\"record\":\"cell\"}\n");
  EXPECT_EQ(read("sweep").cells.size(), 2u);
}

TEST_F(CellReader, KeepsConfigurationsApartBySettingsItDoesNotKnow) {
  write("sweep/cells.jsonl", cell_line("a", {{"config", {{"model", "unet"}, {"width", 8}, {"seed", 1}}}}) +
                                 cell_line("b", {{"config", {{"model", "unet"}, {"width", 16}, {"seed", 2}}}}) +
                                 cell_line("c", {{"config", {{"model", "unet"}, {"width", "16"}, {"seed", 3}}}}));
  const CellSet set = read("sweep");
  EXPECT_NE(key_of(set.cells[0].config), key_of(set.cells[1].config));
  EXPECT_EQ(key_of(set.cells[1].config), key_of(set.cells[2].config));  // only the seed differs
}

TEST_F(CellReader, SurvivesTheJourneyThroughARecord) {
  write("sweep/cells.jsonl",
        cell_line("a",
                  {{"config", {{"model", "r\u00e9s \"x\"\n\U0001F600"}, {"batch", 64}, {"workers", 0}, {"width", 8}}},
                   {"environment", {{"cores", 2}}},
                   {"load", 1.5},
                   {"samples_per_step", 128},
                   {"step_s", {0.1, 1e-3, 2}},
                   {"warmup_steps", 1},
                   {"throughput", {{"mean", 5}, {"deviation", 0.5}}},
                   {"epochs",
                    {{{"epoch", 1},
                      {"train_s", 3.5},
                      {"test_accuracy", 0.5},
                      {"data_per_s", {{{"step", 200}, {"value", 7.5}}}},
                      {"ranks", {{{"rank", 0}, {"node", "n0"}, {"train_s", 3.25}, {"comm_s", 0.5}}}}}}},
                   {"breakdown",
                    {{"compute_s", 1}, {"exposed", {{"bandwidth", 0.25}}}, {"data_wait_s", 2}, {"optimizer_s", 3}}},
                   {"steps", 3},
                   {"run_s", 9},
                   {"nodes", {{{"name", "n0"}, {"ranks", 2}}}},
                   {"node_list", "n0"},
                   {"stated", {{"speedup", 1.5}, {"epochs", 2}, {"average", true}}}}));
  const Cell cell = read("sweep").cells.at(0);
  const json once = cell;
  EXPECT_EQ(json(parse_cell(once.dump(2))), once);
  EXPECT_EQ(cell.config.model, "r\u00e9s \"x\"\n\U0001F600");
  EXPECT_EQ(parse_cell(once.dump(-1, ' ', /*ensure_ascii=*/true)).config.model, cell.config.model);
  EXPECT_EQ(once["step_s"], (json{0.1, 1e-3, 2.0}));
  EXPECT_EQ(once["epochs"][0]["ranks"][0]["comm_s"], 0.5);
  EXPECT_EQ(once["environment"]["cores"], 2);
}

TEST_F(CellReader, ReadsATrainingRunAsOneCell) {
  fs::create_directories(folder_ / "run");
  const json config = {{"model", "mnist-cnn"}, {"batch", 64},         {"ranks", 2},        {"accumulate", 1},
                       {"workers", 1},         {"transport", "auto"}, {"link_gbps", 10.0}, {"bucket_bytes", 1000}};
  const json rank = {{"train_s", 2.0}, {"comm_s", 0.5}, {"comm_exposed_s", 0.25}, {"data_wait_s", 0.0}};
  std::string text;
  text += json({{"record", "run"},
                {"config", config},
                {"nodes", {{{"host", "n1"}, {"ranks", {0}}}, {{"host", "n0"}, {"ranks", {1}}}}},
                {"environment", {{"cores", 4}}}})
              .dump() +
          "\n";
  text += json({{"record", "plan"}}).dump() + "\n";
  text += json({{"record", "progress"}, {"step", 100}, {"epoch", 0}, {"data_per_s", 50.0}}).dump() + "\n";
  text += json({{"record", "epoch"},
                {"epoch", 1},
                {"step", 2},
                {"train_s", 2.0},
                {"test_s", 0.5},
                {"test_accuracy", 0.9},
                {"train_loss", 1.0},
                {"data_per_s", 64.0},
                {"ranks", {rank, rank}},
                {"step_s", {1.0, 1.0}}})
              .dump() +
          "\n";
  const std::string summary = json({{"record", "summary"}, {"transport", "shm"}, {"steps", 2}}).dump() + "\n";
  write("run/records.jsonl", text);
  EXPECT_TRUE(read("run").cells.at(0).is_failed);  // it has not come to its end
  write("run/records.jsonl", text + summary);
  const CellSet set = read("run");
  ASSERT_EQ(set.cells.size(), 1u);
  const Cell& cell = set.cells[0];
  EXPECT_EQ(set.title, "run");
  EXPECT_FALSE(cell.is_failed);
  EXPECT_EQ(cell.config.transport, "shm");
  EXPECT_EQ(cell.config.network, "10 Gbit/s");
  EXPECT_EQ(cell.config.other, "bucket_bytes 1000");
  EXPECT_EQ(cell.config.nodes, 2);
  EXPECT_EQ(cell.node_list, "n[0-1]");
  EXPECT_DOUBLE_EQ(cell.samples_per_step, 128);
  EXPECT_EQ(cell.step_s, (std::vector<double>{1, 1}));
  ASSERT_EQ(cell.epochs.size(), 1u);
  EXPECT_EQ(cell.epochs[0].rates.at(0).step, 100);
  EXPECT_EQ(cell.epochs[0].ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(cell.run_s, 2);
}

TEST_F(CellReader, FindsRunsByNameAndSaysWhatIsNear) {
  write("sweep/cells.jsonl", cell_line("a"));
  EXPECT_EQ(read_cells("sweep", folder_).cells.size(), 1u);
  EXPECT_EQ(read_cells((folder_ / "sweep/cells.jsonl").string(), "elsewhere").cells.size(), 1u);
  try {
    read_cells("swep", folder_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'sweep'?"));
  }
}

}  // namespace
}  // namespace tutti
