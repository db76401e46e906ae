#include "comm/ps/push_pull.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <numeric>

#include "comm/shm/shm.h"
#include "support/ranks.h"
#include "support/test_servers.h"

namespace tutti {
namespace {

struct Group {
  int ranks, servers, ranks_per_node;
};

/// Runs `body` as every rank of a group, each with its connection to the servers; "" or what went wrong.
std::string run_group(const Group& group, const std::function<void(int rank, PushPull& servers)>& body) {
  const TestServers servers("bsp-ps", group.ranks, group.servers, group.ranks_per_node);
  return test::failures(test::run_ranks(test::RunAs::threads, group.ranks, [&](int rank) {
    const auto connection = servers.connect(rank);
    body(rank, connection->push_pull());
    connection->stop();
  }));
}

TEST(PushPull, GivesEveryRankTheSumHoweverManyServersAndNodes) {
  for (const Group& group : {Group{2, 0, 1}, {3, 1, 1}, {2, 3, 1}, {4, 2, 2}, {3, 0, 2}, {4, 1, 4}})
    EXPECT_EQ(run_group(group,
                        [&](int rank, PushPull& servers) {
                          const std::vector<std::size_t> lengths = {1, 100'000, 17, 0, 3000};
                          std::vector<PushPullMessage> messages;
                          for (std::size_t i = 0; i < lengths.size(); ++i)
                            messages.push_back({lengths[i], static_cast<int>(i) % servers.servers()});
                          servers.announce(DataType::f32, messages);
                          for (int step = 0; step < 3; ++step) {
                            std::vector<std::vector<float>> data;
                            for (const std::size_t length : lengths) {
                              data.emplace_back(length);
                              std::iota(data.back().begin(), data.back().end(), static_cast<float>(rank * 10 + step));
                            }
                            servers.begin_step();
                            std::vector<std::unique_ptr<Work>> under_way;
                            for (std::size_t i = 0; i < lengths.size(); ++i)
                              under_way.push_back(servers.start(i, {data[i].data(), lengths[i], DataType::f32}));
                            for (std::size_t i = 0; i < lengths.size(); ++i) {
                              under_way[i]->wait();
                              for (std::size_t k = 0; k < lengths[i]; ++k) {
                                float sum = 0;
                                for (int other = 0; other < group.ranks; ++other)
                                  sum += static_cast<float>(other * 10 + step) + static_cast<float>(k);
                                if (data[i][k] != sum) throw Error("message {}[{}] is {}", i, k, data[i][k]);
                              }
                            }
                          }
                        }),
              "")
        << group.ranks << " ranks, " << group.servers << " servers, " << group.ranks_per_node << " to a node";
}

TEST(PushPull, AnnouncedAnewForgetsWhatWasAnnouncedBefore) {
  EXPECT_EQ(run_group({2, 1, 1},
                      [](int rank, PushPull& servers) {
                        for (const std::size_t length : std::vector<std::size_t>{4, 3, 5}) {
                          servers.announce(DataType::f32, {{length, 0}});
                          for (int step = 0; step < 2; ++step) {
                            std::vector<float> data(length, static_cast<float>(rank + 1));
                            servers.begin_step();
                            servers.start(0, {data.data(), length, DataType::f32})->wait();
                            test::require(data == std::vector<float>(length, 3), "wrong sum");
                          }
                        }
                      }),
            "");
}

TEST(PushPull, TakesAtLeastAsLongAsThePretendedLinks) {
  struct Case {
    Group group;
    std::chrono::milliseconds least;
  };
  // 1 ms, and 1 MB at 100 MB/s: a server of its own carries what all its workers send, which is twice as much where
  // there are two of them to each; a machine with both roles sends half of its gradients, and half of its sums.
  for (const Case& one : {Case{{4, 2, 1}, std::chrono::milliseconds(21)}, {{2, 0, 1}, std::chrono::milliseconds(11)}})
    EXPECT_EQ(run_group(one.group,
                        [&](int, PushPull& servers) {
                          servers.limit_links({std::chrono::milliseconds(1), 100e6});
                          std::vector<float> data(250'000, 1);
                          servers.announce(DataType::f32, {{data.size(), 0}});
                          servers.begin_step();
                          const auto start = std::chrono::steady_clock::now();
                          servers.start(0, {data.data(), data.size(), DataType::f32})->wait();
                          test::require(std::chrono::steady_clock::now() - start >= one.least,
                                        "too fast for the links");
                        }),
              "")
        << one.group.ranks << " ranks, " << one.group.servers << " servers";
}

TEST(PushPull, AddsInRankOrderWhateverComesFirst) {
  // In float32 1e8 + 1 - 1e8 is 0 and 1e8 - 1e8 + 1 is 1: the order shows.
  EXPECT_EQ(run_group({3, 1, 1},
                      [](int rank, PushPull& servers) {
                        servers.announce(DataType::f32, {{1, 0}});
                        for (int late = 0; late < 3; ++late) {
                          float value = rank == 0 ? 1e8F : rank == 1 ? -1e8F : 1.0F;
                          servers.begin_step();
                          if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                          servers.start(0, {&value, 1, DataType::f32})->wait();
                          test::require(value == 1.0F, "added in another order");
                        }
                      }),
            "");
}

TEST(PushPull, RefusesWhatWasNotAnnounced) {
  EXPECT_EQ(run_group({2, 1, 1},
                      [](int, PushPull& servers) {
                        servers.announce(DataType::f32, {{2, 0}});
                        float value = 0;
                        for (const std::size_t message : {0, 1}) {
                          try {
                            servers.start(message, {&value, 1, DataType::f32});
                          } catch (const Error& error) {
                            continue;
                          }
                          throw Error("message {} was taken", message);
                        }
                      }),
            "");
}

TEST(PushPull, EndsEverywhereWhenAWorkerIsGone) {
  const TestServers servers("bsp-ps", 2, 1);
  const auto results = test::run_ranks(test::RunAs::threads, 2, [&](int rank) {
    const auto connection = servers.connect(rank);
    PushPull& mine = connection->push_pull();
    mine.announce(DataType::f32, {{1, 0}});
    if (rank == 1) throw Error("out of luck");
    float value = 0;
    mine.begin_step();
    mine.start(0, {&value, 1, DataType::f32})->wait();
  });
  EXPECT_FALSE(results[0].ok) << "a sum without rank 1's part";
}

}  // namespace
}  // namespace tutti
