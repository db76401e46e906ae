// NCCL between processes. On a machine with one GPU they share it: NCCL_HOSTID makes NCCL take each for a machine of
// its own, and what they say goes through sockets.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "comm/exchange.h"
#include "comm/nccl/nccl.h"
#include "comm/shm/shm.h"
#include "support/ranks.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

std::unique_ptr<Communicator> join(int rank, int size, std::chrono::milliseconds timeout = seconds(30)) {
  ::setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
  NcclOptions options;
  options.rank = rank;
  options.size = size;
  options.timeout = timeout;
  options.share = [&](const std::string& text) {
    ShmOptions shm;
    shm.rank = rank;
    shm.size = size;
    shm.job = fmt::format("nccl-test-{}", ::getppid());
    return broadcast_text(*make_shm_communicator(shm), text);
  };
  return make_nccl_communicator(options);
}

/// Numbers whose sums over ranks are exact in float32.
std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(static_cast<int>(i * 7 % 1001) + rank * 3);
  return result;
}

std::vector<float> sum(int size, std::size_t count) {
  std::vector<float> result(count);
  for (int r = 0; r < size; ++r) {
    const auto theirs = numbers(r, count);
    for (std::size_t i = 0; i < count; ++i) result[i] += theirs[i];
  }
  return result;
}

void require_equal(const float* got, const float* want, std::size_t count, const std::string& what) {
  for (std::size_t i = 0; i < count; ++i)
    require(got[i] == want[i], fmt::format("{}: element {} is {}, not {}", what, i, got[i], want[i]));
}

/// The floats of a span that lies in host or device memory.
class Floats {
 public:
  Floats(Communicator& comm, const std::vector<float>& values, bool on_device)
      : host_(values), device_(on_device ? comm.allocate(values.size() * sizeof(float)) : nullptr) {
    if (on_device) cudaMemcpy(device_, host_.data(), host_.size() * sizeof(float), cudaMemcpyHostToDevice);
  }
  Span span() { return {device_ != nullptr ? device_ : host_.data(), host_.size(), DataType::f32}; }
  const std::vector<float>& values() {
    if (device_ != nullptr) cudaMemcpy(host_.data(), device_, host_.size() * sizeof(float), cudaMemcpyDeviceToHost);
    return host_;
  }

 private:
  std::vector<float> host_;
  void* device_;
};

class NcclTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    // Not asked of CUDA itself, which does not survive the fork of the ranks.
    if (::access("/dev/nvidia0", F_OK) != 0) GTEST_SKIP() << "no GPU";
  }
  void run(const std::function<void(Communicator& comm)>& body) {
    const int size = GetParam();
    EXPECT_EQ(failures(run_ranks(RunAs::processes, size,
                                 [&](int rank) {
                                   const auto comm = join(rank, size);
                                   body(*comm);
                                 })),
              "");
  }
};

TEST_P(NcclTest, AllReduceAddsUpInHostAndDeviceMemory) {
  run([](Communicator& comm) {
    for (const bool on_device : {true, false})
      for (const std::size_t count : {0, 1, 5, 1000, 300'000}) {
        Floats data(comm, numbers(comm.rank(), count), on_device);
        comm.all_reduce_sum(data.span())->wait();
        require_equal(data.values().data(), sum(comm.size(), count).data(), count,
                      fmt::format("{} elements on the {}", count, on_device ? "device" : "host"));
      }
  });
}

TEST_P(NcclTest, ReduceScatterAndAllGatherTakeUnequalShares) {
  run([](Communicator& comm) {
    for (const std::size_t count : {1, 7, 1000, 1001, 100'003}) {
      const auto counts = even_split(count, comm.size());
      const std::size_t begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0});
      Floats data(comm, numbers(comm.rank(), count), true);
      const auto want = sum(comm.size(), count);
      comm.reduce_scatter_sum(data.span(), counts)->wait();
      require_equal(data.values().data() + begin, want.data() + begin, counts[static_cast<std::size_t>(comm.rank())],
                    "reduce_scatter");
      comm.all_gather(data.span(), counts)->wait();
      require_equal(data.values().data(), want.data(), count, "all_gather");
    }
  });
}

TEST_P(NcclTest, OperationsStartedTogetherCompleteInOrder) {
  run([](Communicator& comm) {
    std::vector<std::unique_ptr<Floats>> data;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 8; ++i) {
      data.push_back(std::make_unique<Floats>(comm, numbers(comm.rank() + i, 5000), true));
      works.push_back(comm.all_reduce_sum(data.back()->span()));
    }
    for (int i = 7; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      works[at]->wait();
      std::vector<float> want(5000);
      for (int r = 0; r < comm.size(); ++r) {
        const auto theirs = numbers(r + i, 5000);
        for (std::size_t k = 0; k < want.size(); ++k) want[k] += theirs[k];
      }
      require_equal(data[at]->values().data(), want.data(), 5000, fmt::format("operation {}", i));
    }
  });
}

TEST_P(NcclTest, BroadcastBarrierMessagesAndWholeNumbersWork) {
  run([](Communicator& comm) {
    const int last = comm.size() - 1;
    std::vector<int64_t> words{comm.rank() == last ? int64_t{1} << 60 : 0, comm.rank()};
    comm.broadcast({words.data(), 2, DataType::i64}, last)->wait();
    require(words == std::vector<int64_t>{int64_t{1} << 60, last}, "broadcast of whole numbers");
    comm.barrier()->wait();
    int64_t count = 1;
    comm.all_reduce_sum({&count, 1, DataType::i64})->wait();
    require(count == comm.size(), "sum of whole numbers");
    if (comm.size() == 1) return;
    int64_t word = 40 + comm.rank();
    if (comm.rank() == 0) comm.send({&word, 1, DataType::i64}, 1, 7)->wait();
    if (comm.rank() == 1) comm.receive({&word, 1, DataType::i64}, 0, 7)->wait();
    require(word == (comm.rank() < 2 ? 40 : 40 + comm.rank()), "a message from rank 0 to 1");
    require(gather_texts(comm, fmt::format("r{}", comm.rank()))[1] == "r1", "texts");
  });
}

TEST_P(NcclTest, SixteenBitFloatsAddUp) {
  run([](Communicator& comm) {
    // 1.5 and its small multiples are exact in both formats.
    for (const auto& [type, bits] : {std::pair{DataType::bf16, uint16_t{0x3fc0}}, {DataType::f16, uint16_t{0x3e00}}}) {
      std::vector<uint16_t> values(33, bits);
      comm.all_reduce_sum({values.data(), values.size(), type})->wait();
      const uint16_t of_two = type == DataType::bf16 ? 0x4040 : 0x4200;    // 3
      const uint16_t of_three = type == DataType::bf16 ? 0x4090 : 0x4480;  // 4.5
      const uint16_t want = comm.size() == 1 ? bits : comm.size() == 2 ? of_two : of_three;
      for (const uint16_t value : values) require(value == want, fmt::format("{:x}, not {:x}", value, want));
    }
  });
}

TEST_P(NcclTest, AbortEndsAWaitWithItsReason) {
  if (GetParam() == 1) GTEST_SKIP() << "a lone rank waits for nobody";
  run([](Communicator& comm) {
    Floats data(comm, numbers(0, 1000), true);
    comm.all_reduce_sum(data.span())->wait();  // the first of its kind connects, and returns when all have called it
    // The others never call it again.
    if (comm.rank() != 0) return std::this_thread::sleep_for(seconds(3));
    const auto work = comm.all_reduce_sum(data.span());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      comm.abort("enough");
    });
    std::string text;
    try {
      work->wait();
    } catch (const CommFailed& error) {
      text = error.what();
    }
    other.join();
    require(text.find("enough") != std::string::npos, "got: " + text);
    bool refused = false;
    try {
      comm.barrier()->wait();
    } catch (const CommFailed&) {
      refused = true;
    }
    require(refused, "a barrier after abort()");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclTest, testing::Values(1, 2, 3));

class NcclFailure : public NcclTest {};

TEST_P(NcclFailure, ARankThatNeverCallsIsReportedAfterTheTimeOut) {
  const auto results = run_ranks(RunAs::processes, 2, [](int rank) {
    const auto comm = join(rank, 2, seconds(4));
    if (rank == 1) return std::this_thread::sleep_for(seconds(8));
    Floats data(*comm, numbers(0, 1000), true);
    comm->all_reduce_sum(data.span())->wait();
  });
  EXPECT_FALSE(results[0].ok);
  EXPECT_NE(results[0].text.find("all_reduce"), std::string::npos) << results[0].text;
  EXPECT_NE(results[0].text.find("not done after 4 s"), std::string::npos) << results[0].text;
}

TEST_P(NcclFailure, AKilledRankEndsTheOthers) {
  const auto results = run_ranks(RunAs::processes, 2, [](int rank) {
    const auto comm = join(rank, 2, seconds(20));
    comm->barrier()->wait();
    if (rank == 1) ::kill(::getpid(), SIGKILL);
    Floats data(*comm, numbers(0, 100'000), true);
    comm->all_reduce_sum(data.span())->wait();
  });
  EXPECT_EQ(results[1].signal, SIGKILL);
  EXPECT_FALSE(results[0].ok);
  EXPECT_NE(results[0].text.find("nccl rank 0/2"), std::string::npos) << results[0].text;
}

INSTANTIATE_TEST_SUITE_P(Two, NcclFailure, testing::Values(2));

}  // namespace
}  // namespace tutti::test
