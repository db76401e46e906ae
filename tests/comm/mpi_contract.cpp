// The contract of communicators over MPI. Every process of `mpirun -np 7 mpi_contract` runs the same tests; the ranks
// of a group are its first processes, and what became of each is told to all. Process 0 reports.

#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/communicator_contract.h"
#include "comm/mpi/mpi.h"

namespace tutti::test {
namespace {

/// See kSmallBytes in mpi.cpp and kChunkBytes in exchange.cpp.
std::vector<std::size_t> thresholds(int size) {
  const auto n = static_cast<std::size_t>(size);
  return {4096, 61'440, 65'536, 61'440 * n, 262'144, 4 * 61'440 * n, 262'144 * n, 1'000'000};
}

std::vector<RankResult> run_in_world(int size, const std::function<void(int rank)>& body) {
  const MpiWorld world = start_mpi();
  std::string text;
  if (size > world.size) {
    text = fmt::format("needs {} processes", size);
  } else if (world.rank < size) {
    try {
      body(world.rank);
    } catch (const std::exception& error) {
      text = error.what();
      if (text.empty()) text = "(an error without text)";
    }
  }
  constexpr int kLength = 2000;
  text.resize(kLength);
  std::vector<char> all(static_cast<std::size_t>(world.size) * kLength);
  MPI_Allgather(text.data(), kLength, MPI_CHAR, all.data(), kLength, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<RankResult> results;
  for (int r = 0; r < std::min(size, world.size); ++r) {
    RankResult result;
    result.text = all.data() + static_cast<std::size_t>(r) * kLength;
    result.ok = result.text.empty();
    results.push_back(result);
  }
  if (size > world.size) results.push_back({false, text.c_str(), 0});
  return results;
}

Transport transport(const std::string& name, bool progress_thread) {
  return {name, RunAs::processes,
          [=](int rank, int size, const std::string& job) {
            MpiOptions options;
            options.job = job;
            options.rank = rank;
            for (int r = 0; r < size; ++r) options.processes.push_back(r);
            options.limits = wait_limits(std::chrono::seconds(20));
            options.progress_thread = progress_thread;
            return make_mpi_communicator(options);
          },
          thresholds, run_in_world};
}

INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorContract,
                         testing::Values(transport("ProgressingInWait", false), transport("WithProgressThread", true)),
                         name_of_transport);
// Three ranks wait for the fourth, one of them only for another that waits: it must find out whom for.
TEST(MpiTimeout, NamesTheRankThatDoesNotComeAlsoWhereOthersAreAwaited) {
  constexpr int kRanks = 4, kAbsent = 2, kHasty = 3, kTag = 32'760;
  const auto results = run_in_world(kRanks, [](int rank) {
    MpiOptions options;
    options.job = "missing";
    options.rank = rank;
    for (int r = 0; r < kRanks; ++r) options.processes.push_back(r);
    options.limits = {std::chrono::milliseconds(600), std::chrono::milliseconds(rank == kHasty ? 1500 : 60'000)};
    options.progress_thread = false;
    const auto comm = make_mpi_communicator(options);
    comm->barrier()->wait();
    int nothing = 0;
    if (rank == kAbsent) {  // there, and busy with something else until the others have given up
      for (int r = 0; r < kRanks; ++r)
        if (r != kAbsent) MPI_Recv(&nothing, 1, MPI_INT, r, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    }
    const std::string text = error_of([&] { comm->barrier()->wait(); });
    MPI_Send(&nothing, 1, MPI_INT, kAbsent, kTag, MPI_COMM_WORLD);
    require_contains(text, "rank 3 waits for rank 2 of 4, alive but not there for 1.5 s");
  });
  EXPECT_EQ(failures(results), "");
}

TEST(MpiTimeout, NamesARankThatIsStoppedOnAllRanks) {
  constexpr int kRanks = 3;
  for (int victim = 0; victim < kRanks; ++victim) {
    const auto results = run_in_world(kRanks, [victim](int rank) {
      MpiOptions options;
      options.job = "stopped-" + std::to_string(victim);
      options.rank = rank;
      for (int r = 0; r < kRanks; ++r) options.processes.push_back(r);
      options.limits = {std::chrono::milliseconds(1500), std::chrono::milliseconds(60'000)};
      options.progress_thread = false;
      const auto comm = make_mpi_communicator(options);
      comm->barrier()->wait();
      if (rank == victim) {
        const std::string waker = "(sleep 3; kill -CONT " + std::to_string(getpid()) + ") &";
        require(std::system(waker.c_str()) == 0, "no shell");
        raise(SIGSTOP);
      }
      const std::string text = error_of([&] { comm->barrier()->wait(); });
      require_contains(text, "has heard nothing from rank " + std::to_string(victim) + " of 3");
    });
    EXPECT_EQ(failures(results), "") << "victim " << victim;
  }
}

TEST(MpiTimeout, WaitsForARankThatComputesAsLongAsItIsAlive) {
  constexpr int kRanks = 3;
  const auto results = run_in_world(kRanks, [](int rank) {
    MpiOptions options;
    options.job = "slow";
    options.rank = rank;
    for (int r = 0; r < kRanks; ++r) options.processes.push_back(r);
    options.limits = {std::chrono::milliseconds(400), std::chrono::milliseconds(60'000)};
    options.progress_thread = false;
    const auto comm = make_mpi_communicator(options);
    comm->barrier()->wait();
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    comm->barrier()->wait();
  });
  EXPECT_EQ(failures(results), "");
}

// mpirun ends all processes when one is killed: see tests/cli for what a user sees then.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KilledRankContract);

}  // namespace
}  // namespace tutti::test

// What MPI leaks in parts that it tries and unloads again bears no name to suppress it by, and the search for leaks
// crashes in the memory of MPI's threads (clang 14). Leaks of the contract's code are found over shm.
extern "C" int __lsan_is_turned_off() { return 1; }

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const tutti::MpiWorld world = tutti::start_mpi();
  if (world.rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
  }
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();  // here, since some tests end with a failure, after which Tutti itself would not wait for the others
  return result;
}
