#include "comm/shm/shm.h"

#include <gtest/gtest.h>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "comm/communicator_contract.h"

namespace tutti::test {
namespace {

/// See small_bytes() in collective.cpp, kChunkBytes in schedules.cpp and kStageBytes in segment.h.
std::vector<std::size_t> thresholds(int size) {
  const auto n = static_cast<std::size_t>(size);
  return {4096, 16'384, 131'072 / n, 131'072, 2 * 131'072, 524'288 / n, 524'288, 2 * 524'288};
}

Transport transport(const std::string& name, RunAs run_as, bool progress_thread) {
  return {name, run_as,
          [=](int rank, int size, const std::string& job) {
            ShmOptions options;
            options.rank = rank;
            options.size = size;
            options.job = job;
            options.progress_thread = progress_thread;
            options.connect_timeout = std::chrono::seconds(20);
            return make_shm_communicator(options);
          },
          thresholds};
}

const Transport kInWait = transport("ProcessesProgressingInWait", RunAs::processes, false);
const Transport kInThread = transport("ProcessesWithProgressThread", RunAs::processes, true);
// In one process the thread sanitizer sees more.
const Transport kThreadsInWait = transport("ThreadsProgressingInWait", RunAs::threads, false);
const Transport kThreadsInThread = transport("ThreadsWithProgressThread", RunAs::threads, true);

INSTANTIATE_TEST_SUITE_P(Shm, CommunicatorContract,
                         testing::Values(kInWait, kInThread, kThreadsInWait, kThreadsInThread), name_of_transport);
INSTANTIATE_TEST_SUITE_P(Shm, KilledRankContract, testing::Values(kInWait, kInThread), name_of_transport);

std::string unique_job() {
  static int jobs = 0;
  return fmt::format("shm-test-{}-{}", getpid(), jobs++);
}

ShmOptions options(int rank, int size, const std::string& job) {
  ShmOptions options;
  options.rank = rank;
  options.size = size;
  options.job = job;
  options.connect_timeout = std::chrono::seconds(20);
  options.progress_thread = false;
  return options;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in_dev_shm() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm")) ++count;
  return count;
}

TEST(Shm, SixtyFourRanksWorkTogether) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 64,
                               [&](int rank) {
                                 const auto comm = make_shm_communicator(options(rank, 64, job));
                                 auto* const data = static_cast<int64_t*>(comm->allocate(20'000 * 8));
                                 for (int i = 0; i < 20'000; ++i) data[i] = rank + i;
                                 comm->all_reduce_sum({data, 20'000, DataType::i64})->wait();
                                 for (int i = 0; i < 20'000; ++i) require(data[i] == 2016 + 64 * i, "wrong sum");
                                 int64_t from_left = -1, own = rank;
                                 const auto send = comm->send({&own, 1, DataType::i64}, (rank + 1) % 64, 1);
                                 comm->receive({&from_left, 1, DataType::i64}, (rank + 63) % 64, 1)->wait();
                                 send->wait();
                                 require(from_left == (rank + 63) % 64, "wrong neighbour");
                                 std::vector<float> ones(300, 1.0f);
                                 comm->all_reduce_sum({ones.data(), 300, DataType::f32})->wait();
                                 require(ones[299] == 64.0f, "wrong small sum");
                               })),
            "");
}

TEST(Shm, RefusesMoreThanSixtyFourRanksAndRanksOutside) {
  EXPECT_THROW(make_shm_communicator(options(0, 65, "x")), UsageError);
  EXPECT_THROW(make_shm_communicator(options(2, 2, "x")), UsageError);
}

TEST(Shm, RankZeroMayComeLast) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 3,
                               [&](int rank) {
                                 if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
                                 make_shm_communicator(options(rank, 3, job))->barrier()->wait();
                               })),
            "");
}

TEST(Shm, GroupsOfOneNameMayFollowEachOtherAtOnce) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 3,
                               [&](int rank) {
                                 for (int i = 0; i < 20; ++i) {
                                   make_shm_communicator(options(rank, 3, job))->barrier()->wait();
                                 }
                               })),
            "");
}

TEST(Shm, NamesTheRanksThatDoNotCome) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 2,
                               [&](int rank) {
                                 ShmOptions mine = options(rank, 4, job);
                                 mine.connect_timeout = std::chrono::milliseconds(300);
                                 const std::string text = error_of([&] { make_shm_communicator(mine); });
                                 require_contains(text, "ranks 2, 3 of 4 did not come");
                               })),
            "");
  ShmOptions alone = options(1, 2, unique_job());
  alone.connect_timeout = std::chrono::milliseconds(100);
  require_contains(error_of([&] { make_shm_communicator(alone); }), "rank 0 did not come");
}

TEST(Shm, TwoProcessesOfOneRankAreAnErrorOnAllSides) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 3,
                               [&](int process) {
                                 const int rank = std::min(process, 1);
                                 const std::string text =
                                     error_of([&] { make_shm_communicator(options(rank, 3, job)); });
                                 require_contains(text, "two processes came as rank 1 of 3");
                               })),
            "");
}

TEST(Shm, DifferentSizesAreAnErrorOnBothSides) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 2,
                               [&](int rank) {
                                 const std::string text =
                                     error_of([&] { make_shm_communicator(options(rank, 2 + rank, job)); });
                                 require_contains(text, "came as rank 1 of 3");
                                 require_contains(text, "started for 2 ranks");
                               })),
            "");
}

TEST(Shm, ARankThatDiesBeforeAllHaveComeEndsTheWait) {
  const std::string job = unique_job();
  const auto results = run_ranks(RunAs::processes, 3, [&](int rank) {
    if (rank == 2) return;  // never comes
    if (rank == 1) {
      std::thread killer([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        raise(SIGKILL);
      });
      make_shm_communicator(options(1, 3, job));
    }
    require_contains(error_of([&] { make_shm_communicator(options(0, 3, job)); }), "rank 1 of 3");
  });
  EXPECT_EQ(results[0].text, "");
}

TEST(Shm, LeavesNothingBehindEvenWhenKilled) {
  const std::size_t files_before = files_in_dev_shm();
  const std::string job = unique_job();
  run_ranks(RunAs::processes, 3, [&](int rank) {
    const auto comm = make_shm_communicator(options(rank, 3, job));
    comm->allocate(1 << 20);
    comm->barrier()->wait();
    require(read_all("/proc/net/unix").find(job) == std::string::npos, "the socket's name outlives the meeting");
    if (rank == 1) raise(SIGKILL);
    error_of([&] { comm->barrier()->wait(); });
  });
  EXPECT_EQ(files_in_dev_shm(), files_before);
  EXPECT_EQ(read_all("/proc/net/unix").find(job), std::string::npos);
}

TEST(Shm, AskingForMoreMemoryThanThereIsFailsOnAllRanks) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 2,
                               [&](int rank) {
                                 const auto comm = make_shm_communicator(options(rank, 2, job));
                                 require_contains(error_of([&] { comm->allocate(std::size_t{1} << 45); }),
                                                  "2 ranks cannot have 33554432 MiB of shared memory each");
                               })),
            "");
}

TEST(Shm, AFailureNeedsNoProgressOfRankZero) {
  const std::string job = unique_job();
  SharedPage page;
  const auto results = run_ranks(RunAs::processes, 3, [&](int rank) {
    const auto comm = make_shm_communicator(options(rank, 3, job));
    comm->barrier()->wait();
    if (rank == 0) return;  // leaves in order; the others go on without it
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      die(page);
    }
    float value = 0;
    expect_death_noticed(page, "rank 2 of 3", [&] { comm->receive({&value, 1, DataType::f32}, 2, 1)->wait(); });
  });
  EXPECT_EQ(results[0].text, "");
  EXPECT_EQ(results[1].text, "");
}

TEST(Shm, AWorkMayOutliveItsCommunicator) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 2,
                               [&](int rank) {
                                 auto comm = make_shm_communicator(options(rank, 2, job));
                                 float value = 0;
                                 const auto work = comm->receive({&value, 1, DataType::f32}, 1 - rank, 1);
                                 comm.reset();
                                 require_contains(error_of([&] { work->wait(); }), "closed its communicator");
                               })),
            "");
}

TEST(Shm, WaitsSleepInsteadOfSpinning) {
  const std::string job = unique_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, 2,
                               [&](int rank) {
                                 const auto comm = make_shm_communicator(options(rank, 2, job));
                                 comm->barrier()->wait();
                                 if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
                                 const std::clock_t before = std::clock();
                                 comm->barrier()->wait();
                                 const double busy_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
                                 require(busy_s < 0.1, fmt::format("used the processor for {} s", busy_s));
                               })),
            "");
}

}  // namespace
}  // namespace tutti::test
