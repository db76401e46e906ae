#include "comm/hierarchical.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "comm/exchange.h"
#include "comm/shm/shm.h"
#include "support/ranks.h"

namespace tutti::test {
namespace {

std::unique_ptr<Communicator> group(const std::string& name, int rank, int size) {
  ShmOptions options;
  options.rank = rank;
  options.size = size;
  options.job = fmt::format("hierarchical-{}-{}", ::getpid(), name);
  return make_shm_communicator(options);
}

std::unique_ptr<Communicator> join(int rank, const std::vector<int>& node_ranks) {
  const int size = std::accumulate(node_ranks.begin(), node_ranks.end(), 0);
  NodeGroups groups;
  groups.node_ranks = node_ranks;
  groups.all = group("all", rank, size);
  int first = 0, node = 0;
  while (rank >= first + node_ranks[static_cast<std::size_t>(node)])
    first += node_ranks[static_cast<std::size_t>(node++)];
  groups.inside = group(fmt::format("node{}", node), rank - first, node_ranks[static_cast<std::size_t>(node)]);
  if (rank == first) groups.leaders = group("leaders", node, static_cast<int>(node_ranks.size()));
  return make_hierarchical_communicator(std::move(groups));
}

float number(int rank, std::size_t i) { return static_cast<float>(static_cast<int>(i % 97) * (rank + 1)); }

class Hierarchical : public testing::TestWithParam<std::vector<int>> {
 protected:
  int size() const { return std::accumulate(GetParam().begin(), GetParam().end(), 0); }
  void run(const std::function<void(Communicator& comm)>& body) {
    EXPECT_EQ(failures(run_ranks(RunAs::threads, size(),
                                 [&](int rank) {
                                   const auto comm = join(rank, GetParam());
                                   body(*comm);
                                 })),
              "");
  }
};

TEST_P(Hierarchical, AddsUpOverAllNodes) {
  run([](Communicator& comm) {
    for (const std::size_t count : {0, 1, 1000, 70'000}) {
      std::vector<float> data(count);
      for (std::size_t i = 0; i < count; ++i) data[i] = number(comm.rank(), i);
      comm.all_reduce_sum({data.data(), count, DataType::f32})->wait();
      const int ranks = comm.size() * (comm.size() + 1) / 2;
      for (std::size_t i = 0; i < count; ++i)
        require(data[i] == static_cast<float>(static_cast<int>(i % 97) * ranks), fmt::format("{} of {}", i, count));
    }
  });
}

TEST_P(Hierarchical, ScattersAndGathersSharesOfAnyLength) {
  run([](Communicator& comm) {
    for (const std::size_t count : {1, 6, 1001, 50'000}) {
      auto counts = even_split(count, comm.size());
      std::swap(counts.front(), counts.back());
      const std::size_t begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0});
      const std::size_t end = begin + counts[static_cast<std::size_t>(comm.rank())];
      std::vector<float> data(count);
      for (std::size_t i = 0; i < count; ++i) data[i] = number(comm.rank(), i);
      const auto want = [&](std::size_t i) {
        return static_cast<float>(static_cast<int>(i % 97) * comm.size() * (comm.size() + 1) / 2);
      };
      const Span span{data.data(), count, DataType::f32};
      comm.reduce_scatter_sum(span, counts)->wait();
      for (std::size_t i = begin; i < end; ++i)
        require(data[i] == want(i), fmt::format("scattered {} of {}", i, count));
      for (std::size_t i = 0; i < count; ++i)
        if (i < begin || i >= end) data[i] = -1;
      comm.all_gather(span, counts)->wait();
      for (std::size_t i = 0; i < count; ++i) require(data[i] == want(i), fmt::format("gathered {} of {}", i, count));
    }
  });
}

TEST_P(Hierarchical, BroadcastsFromAnyRankAndTellsTexts) {
  run([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      int64_t word = comm.rank() == root ? 100 + root : 0;
      comm.broadcast({&word, 1, DataType::i64}, root)->wait();
      require(word == 100 + root, fmt::format("broadcast from {}", root));
    }
    comm.barrier()->wait();
    const auto texts = gather_texts(comm, fmt::format("r{}", comm.rank()));
    for (int r = 0; r < comm.size(); ++r) require(texts[static_cast<std::size_t>(r)] == fmt::format("r{}", r), "texts");
  });
}

TEST_P(Hierarchical, SeveralMayBeUnderWayWhenWaitedForInOrder) {
  run([](Communicator& comm) {
    std::vector<std::vector<float>> data(6, std::vector<float>(3000, static_cast<float>(comm.rank())));
    std::vector<std::unique_ptr<Work>> works;
    for (auto& one : data) works.push_back(comm.all_reduce_sum({one.data(), one.size(), DataType::f32}));
    for (auto& work : works) work->wait();
    for (auto& one : data)
      require(one[2999] == static_cast<float>(comm.size() * (comm.size() - 1) / 2), "a sum among several");
  });
}

TEST_P(Hierarchical, AbortOfOneRankEndsTheOthersOnEveryNode) {
  const auto results = run_ranks(RunAs::threads, size(), [&](int rank) {
    const auto comm = join(rank, GetParam());
    comm->barrier()->wait();
    if (rank == size() - 1) return comm->abort("no more");
    float one = 1;
    comm->all_reduce_sum({&one, 1, DataType::f32})->wait();
  });
  for (int rank = 0; rank + 1 < size(); ++rank) {
    const RankResult& result = results[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(result.ok) << rank;
    EXPECT_NE(result.text.find("no more"), std::string::npos) << result.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Hierarchical,
                         testing::Values(std::vector<int>{2, 2}, std::vector<int>{3, 2}, std::vector<int>{1, 2, 1}));

}  // namespace
}  // namespace tutti::test
