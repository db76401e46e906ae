#include "sweep/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "sweep/cells.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A sweep of 2 strategies × 2 numbers of ranks and a baseline, twice.
class ProgressOfASweep : public ::testing::Test {
 protected:
  ProgressOfASweep() : path_(::testing::TempDir() + "bench_progress_" + std::to_string(::getpid())) {
    remove_tree(path_);
    Sweep sweep;
    sweep.axes = {{"strategy", {"bsp", "dear"}}, {"ranks", {"2", "4"}}};
    sweep.baseline = {{"ranks", "1"}};
    sweep.repeats = 2;
    plan_.name = "s";
    plan_.axes = {{"strategy", {"bsp", "dear"}}, {"ranks", {"2", "4"}}};
    plan_.axis_order = {"strategy", "ranks"};
    plan_.compare = "strategy";
    plan_.cells = expand(sweep);
  }
  ~ProgressOfASweep() override { remove_tree(path_); }

  static Cell done(const std::string& id, double wall_s, double rate) {
    Cell cell;
    cell.id = id;
    cell.wall_s = wall_s;
    cell.samples_per_step = rate;
    cell.warmup_steps = 1;
    cell.step_s = {9.0, 1.0, 1.0, 5.0};
    return cell;
  }
  static Cell failed(const std::string& id) {
    Cell cell;
    cell.id = id;
    cell.is_failed = true;
    cell.error = "no luck";
    return cell;
  }

  fs::path path_;
  SweepPlan plan_;
};

TEST_F(ProgressOfASweep, CountsCellsByState) {
  SweepFolder folder = SweepFolder::create(path_, plan_);
  folder.add(done("ranks1.1", 1, 10));
  folder.add(failed("bsp-ranks2.1"));
  const CellCounts counts = count_cells(folder);
  EXPECT_EQ(counts.all, 10U);
  EXPECT_EQ(counts.done, 1U);
  EXPECT_EQ(counts.failed, 1U);
}

TEST_F(ProgressOfASweep, JudgesTheTimeLeftByRepeatsOfTheSameElseByAll) {
  SweepFolder folder = SweepFolder::create(path_, plan_);
  EXPECT_LT(seconds_left(folder, "", 0), 0);
  folder.add(done("ranks1.1", 2, 10));
  folder.add(done("bsp-ranks2.1", 4, 10));
  // The two whose repeat is known take 2 and 4 s, six others 3 s each.
  EXPECT_DOUBLE_EQ(seconds_left(folder, "", 0), 2 + 4 + 6 * 3);
  // A cell that runs already has less to go, but never less than nothing.
  EXPECT_DOUBLE_EQ(seconds_left(folder, "dear-ranks2.1", 1), 2 + 4 + 5 * 3 + 2);
  EXPECT_DOUBLE_EQ(seconds_left(folder, "dear-ranks2.1", 9), 2 + 4 + 5 * 3);
}

TEST_F(ProgressOfASweep, ShowsATableOfWhatIsCompared) {
  SweepFolder folder = SweepFolder::create(path_, plan_);
  folder.add(done("ranks1.1", 2, 10));
  folder.add(done("bsp-ranks2.1", 2, 100));
  folder.add(done("bsp-ranks2.2", 2, 200));
  folder.add(failed("dear-ranks2.1"));
  EXPECT_EQ(progress_table(folder, "bsp-ranks4.1", 80, 20),
            "samples/s                 bsp      dear\n"
            "ranks 1          10                    \n"
            "ranks 2                   150    failed\n"
            "ranks 4                   >>>         .\n");
}

TEST_F(ProgressOfASweep, KeepsTheTableInsideTheTerminal) {
  SweepFolder folder = SweepFolder::create(path_, plan_);
  EXPECT_EQ(progress_table(folder, "bsp-ranks4.1", 30, 2),
            "samples/s                 bsp \nranks 4                   >>> \n");
}

TEST_F(ProgressOfASweep, IsReadAgainFromTheFolder) {
  {
    SweepFolder folder = SweepFolder::create(path_, plan_);
    folder.add(failed("ranks1.1"));
    folder.add(done("ranks1.1", 2, 10));
    folder.add(failed("ranks1.2"));
  }
  const SweepFolder folder = SweepFolder::open(path_);
  EXPECT_EQ(folder.outcome("ranks1.1").state, CellState::done);
  EXPECT_EQ(folder.outcome("ranks1.1").samples_per_s, 10);
  EXPECT_EQ(folder.outcome("ranks1.2").state, CellState::failed);
  EXPECT_EQ(folder.outcome("ranks1.2").error, "no luck");
  EXPECT_EQ(folder.outcome("bsp-ranks2.1").state, CellState::pending);
  EXPECT_EQ(folder.cells().size(), 10U);
}

TEST_F(ProgressOfASweep, ForgetsHalfALineThatAKilledProcessHasLeft) {
  { SweepFolder::create(path_, plan_).add(done("ranks1.1", 2, 10)); }
  const std::string whole = read_file(path_ / "cells.jsonl");
  write_file_atomically(path_ / "cells.jsonl", whole + R"({"cell": "ranks1.2", "status": "do)");
  {
    SweepFolder folder = SweepFolder::open(path_);
    EXPECT_EQ(read_file(path_ / "cells.jsonl"), whole);
    EXPECT_EQ(folder.outcome("ranks1.2").state, CellState::pending);
  }
  write_file_atomically(path_ / "cells.jsonl", "nonsense\n" + whole);
  EXPECT_THROW(SweepFolder::open(path_), Error);
}

TEST_F(ProgressOfASweep, BelongsToOneProcessAtATime) {
  const SweepFolder folder = SweepFolder::create(path_, plan_);
  EXPECT_THROW(SweepFolder::open(path_), Error);
}

TEST_F(ProgressOfASweep, IsNotOverwrittenByANewSweep) {
  { const SweepFolder folder = SweepFolder::create(path_, plan_); }
  EXPECT_THROW(SweepFolder::create(path_, plan_), UsageError);
  EXPECT_THROW(SweepFolder::open(path_ / "cells"), UsageError);
}

TEST_F(ProgressOfASweep, IsFoundByItsName) {
  const fs::path runs = path_;
  EXPECT_THROW(newest_sweep(runs, ""), UsageError);
  { const SweepFolder folder = SweepFolder::create(runs / "first", plan_); }
  plan_.name = "other";
  { const SweepFolder folder = SweepFolder::create(runs / "second", plan_); }
  fs::last_write_time(runs / "first" / "sweep.json", fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(newest_sweep(runs, ""), runs / "second");
  EXPECT_EQ(newest_sweep(runs, "s"), runs / "first");
  EXPECT_THROW(newest_sweep(runs, "third"), UsageError);
}

TEST(ShownDuration, IsShort) {
  EXPECT_EQ(shown_duration(7.4), "7 s");
  EXPECT_EQ(shown_duration(92), "1:32 min");
  EXPECT_EQ(shown_duration(7510), "2:05:10 h");
}

}  // namespace
}  // namespace tutti::sweep
