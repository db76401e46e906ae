// Ranks that others wait for: stopped, slow, or as stopped as everybody else.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/exit_note.h"
#include "comm/communicator_contract.h"
#include "comm/shm/shm.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

// Of the header: shm_test has them.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KilledRankContract);

constexpr int kRanks = 3;

struct Pids {
  std::array<std::atomic<pid_t>, kRanks> of;
};

std::unique_ptr<Communicator> join(int rank, const std::string& job, const WaitLimits& limits) {
  ShmOptions options;
  options.rank = rank;
  options.size = kRanks;
  options.job = job;
  options.progress_thread = false;
  options.limits = limits;
  return make_shm_communicator(options);
}

std::string unique_silence_job() {
  static int jobs = 0;
  return fmt::format("silence-test-{}-{}", getpid(), jobs++);
}

/// Stops `victim` before `operation`, which all ranks begin, and expects all to name it, the victim too once it goes
/// on.
void expect_named(int victim, const std::function<void(Communicator&)>& operation, const std::string& what) {
  const std::string job = unique_silence_job();
  SharedPage page;
  const auto results = run_ranks(RunAs::processes, kRanks, [&](int rank) {
    page.as<Pids>().of[static_cast<std::size_t>(rank)] = getpid();
    const auto comm = join(rank, job, {milliseconds(1500), milliseconds(60'000)});
    comm->barrier()->wait();
    if (rank == victim) raise(SIGSTOP);
    const std::string text = error_of([&] { operation(*comm); });
    kill(page.as<Pids>().of[static_cast<std::size_t>(victim)], SIGCONT);
    require_contains(text, fmt::format("rank {} of 3 (pid ", victim));
    require_contains(text, "has stopped: no sign of life for 1.");
    require_contains(text, "in " + what);
    require_contains(text, "SIGSTOP");
    require(noted_culprit() == victim, "the exit note would blame another");
  });
  EXPECT_EQ(failures(results), "") << "victim " << victim;
}

TEST(StoppedRank, IsNamedByAllWhereverItWasAwaited) {
  for (int victim = 0; victim < kRanks; ++victim) {
    expect_named(
        victim, [](Communicator& comm) { comm.barrier()->wait(); }, "barrier");
    std::vector<float> data(1'000'000);
    expect_named(
        victim,
        [&](Communicator& comm) {
          comm.all_reduce_sum({data.data(), data.size(), DataType::f32})->wait();
        },
        "all_reduce of 1000000 f32");
  }
}

TEST(StoppedRank, IsNamedByThoseWhoWaitForItsMessages) {
  const std::string job = unique_silence_job();
  SharedPage page;
  const auto results = run_ranks(RunAs::processes, kRanks, [&](int rank) {
    page.as<Pids>().of[static_cast<std::size_t>(rank)] = getpid();
    const auto comm = join(rank, job, {milliseconds(1000), milliseconds(60'000)});
    comm->barrier()->wait();
    if (rank == 2) raise(SIGSTOP);
    // Rank 0 waits for rank 1, which waits for rank 2.
    float value = 0;
    const std::string text = error_of([&] {
      comm->receive({&value, 1, DataType::f32}, (rank + 1) % kRanks, 7)->wait();
      comm->send({&value, 1, DataType::f32}, (rank + kRanks - 1) % kRanks, 7)->wait();
    });
    kill(page.as<Pids>().of[2], SIGCONT);
    require_contains(text, "rank 2 of 3 (pid ");
    require_contains(text, "in receive of 4 bytes with tag 7");
  });
  EXPECT_EQ(failures(results), "");
}

TEST(SlowRank, IsWaitedForAsLongAsItIsAlive) {
  const std::string job = unique_silence_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, kRanks,
                               [&](int rank) {
                                 const auto comm = join(rank, job, {milliseconds(500), milliseconds(60'000)});
                                 comm->barrier()->wait();
                                 if (rank == 1) std::this_thread::sleep_for(milliseconds(2000));
                                 comm->barrier()->wait();
                               })),
            "");
}

TEST(SlowRank, IsNamedWhenEvenALongPatienceIsOver) {
  const std::string job = unique_silence_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, kRanks,
                               [&](int rank) {
                                 const auto comm = join(rank, job, {milliseconds(20'000), milliseconds(1000)});
                                 comm->barrier()->wait();
                                 if (rank == 1) std::this_thread::sleep_for(milliseconds(2500));
                                 const std::string text = error_of([&] { comm->barrier()->wait(); });
                                 require_contains(text, "rank 1 of 3 (pid ");
                                 require_contains(text, "is alive but has not come for 1.");
                                 require(noted_culprit() == 1, "the exit note would blame another");
                               })),
            "");
}

TEST(StoppedGroup, GoesOnAfterwardsAndBlamesNobody) {
  const std::string job = unique_silence_job();
  SharedPage page;
  const auto results = run_ranks(RunAs::processes, kRanks + 1, [&](int rank) {
    auto& pids = page.as<Pids>().of;
    if (rank == kRanks) {  // stops the others
      while (pids[0] == 0 || pids[1] == 0 || pids[2] == 0) std::this_thread::sleep_for(milliseconds(10));
      std::this_thread::sleep_for(milliseconds(300));
      for (const auto& pid : pids) kill(pid, SIGSTOP);
      std::this_thread::sleep_for(milliseconds(2500));
      for (const auto& pid : pids) kill(pid, SIGCONT);
      return;
    }
    const auto comm = join(rank, job, {milliseconds(1000), milliseconds(60'000)});
    comm->barrier()->wait();
    pids[static_cast<std::size_t>(rank)] = getpid();
    if (rank == 1) std::this_thread::sleep_for(milliseconds(3500));
    comm->barrier()->wait();
  });
  EXPECT_EQ(failures(results), "");
}

TEST(Awaited, SaysForWhomAndInWhat) {
  const std::string job = unique_silence_job();
  EXPECT_EQ(failures(run_ranks(RunAs::processes, kRanks,
                               [&](int rank) {
                                 const auto comm = join(rank, job, {});
                                 comm->barrier()->wait();
                                 require(comm->awaited().call.empty(), "waits for something");
                                 if (rank == 2) std::this_thread::sleep_for(milliseconds(800));
                                 Awaited seen;
                                 std::thread looker([&] {
                                   std::this_thread::sleep_for(milliseconds(500));
                                   seen = comm->awaited();
                                 });
                                 comm->barrier()->wait();
                                 looker.join();
                                 if (rank == 2) return;
                                 require(seen.call == "barrier", "waits in " + seen.call);
                                 require(seen.ranks == std::vector<int>{2}, "waits for another");
                                 require(seen.seconds > 0.1 && seen.seconds < 30, "waits too short");
                               })),
            "");
}

}  // namespace
}  // namespace tutti::test
