#pragma once

// What every Communicator must do. A transport's test includes this and instantiates both suites:
//   INSTANTIATE_TEST_SUITE_P(Shm, CommunicatorContract, testing::Values(transport, ...), name_of_transport);
//   INSTANTIATE_TEST_SUITE_P(Shm, KilledRankContract, testing::Values(transport, ...), name_of_transport);

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/exchange.h"
#include "comm/numbers.h"
#include "support/ranks.h"
#include "tutti/communicator.h"

namespace tutti::test {

struct Transport {
  std::string name;
  RunAs run_as = RunAs::processes;
  /// `job` is the same for all ranks of a group and different from any other group.
  std::function<std::unique_ptr<Communicator>(int rank, int size, const std::string& job)> make;
  /// Sizes in bytes at which the transport changes its ways; tested one element below, at, and above.
  std::function<std::vector<std::size_t>(int size)> thresholds;
  /// Runs the ranks of a group where the transport wants them; unset: as run_as says.
  std::function<std::vector<RankResult>(int size, const std::function<void(int rank)>& body)> run = {};
};

inline std::string name_of_transport(const testing::TestParamInfo<Transport>& info) { return info.param.name; }

inline void check_equal(const void* got, const void* want, std::size_t bytes, const std::string& what) {
  if (bytes == 0 || std::memcmp(got, want, bytes) == 0) return;
  std::size_t at = 0;
  while (static_cast<const char*>(got)[at] == static_cast<const char*>(want)[at]) ++at;
  require(false, fmt::format("{}: wrong from byte {} of {} on", what, at, bytes));
}

/// The text of the CommFailed or Error that `call` throws.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

inline void require_contains(const std::string& text, const std::string& part) {
  require(text.find(part) != std::string::npos, fmt::format("\"{}\" does not contain \"{}\"", text, part));
}

/// Every rank's input of one type, and the sum of all. To make them takes longer than to communicate, so that they are
/// made once: fewer of them are the first of more.
struct Numbers {
  Numbers(DataType type, int ranks, std::size_t count) : type(type), count(count) {
    for (int r = 0; r < ranks; ++r) {
      inputs.push_back(first_of(known_inputs()[{type, r}],
                                [&] { return random_numbers(type, count, 100u + static_cast<unsigned>(r)); }));
    }
    sum = first_of(known_sums()[{type, ranks}], [&] { return reference_sum(type, inputs, count); });
  }
  const unsigned char* input(int rank, std::size_t element = 0) const {
    return reinterpret_cast<const unsigned char*>(inputs[static_cast<std::size_t>(rank)].data()) +
           element * bytes_of(type);
  }
  const unsigned char* total(std::size_t element = 0) const {
    return reinterpret_cast<const unsigned char*>(sum.data()) + element * bytes_of(type);
  }

  DataType type;
  std::size_t count;
  std::vector<Words> inputs;
  Words sum;

 private:
  struct Known {
    std::size_t count = 0;
    Words words;
  };
  using Memory = std::map<std::pair<DataType, int>, Known>;
  static Memory& known_inputs() {
    static Memory memory;  // by rank
    return memory;
  }
  static Memory& known_sums() {
    static Memory memory;  // by number of ranks
    return memory;
  }
  template <typename Make>
  Words first_of(Known& known, const Make& make) const {
    if (known.count < count) known = {count, make()};
    return {known.words.begin(), known.words.begin() + static_cast<std::ptrdiff_t>(words_for(type, count).size())};
  }
};

/// A rank's memory for one collective: in allocate()d memory or not.
class Buffer {
 public:
  Buffer(Communicator& comm, std::size_t bytes, bool shared) : own_(shared ? 0 : bytes / 8 + 2) {
    data_ =
        shared ? static_cast<unsigned char*>(comm.allocate(bytes + 64)) : reinterpret_cast<unsigned char*>(own_.data());
  }
  unsigned char* data() { return data_; }
  /// Moves the beginning, e.g. to different places on different ranks.
  void shift(std::size_t bytes) { data_ += bytes; }
  Span span(std::size_t count, DataType type) { return {data_, count, type}; }
  void fill(const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(data_, from, bytes);
  }

 private:
  Words own_;
  unsigned char* data_;
};

/// Equal, unequal, partly empty and one-sided ways to cut `count` elements for `ranks`.
inline std::vector<std::vector<std::size_t>> ways_to_cut(std::size_t count, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::size_t>> ways{even_split(count, ranks)};
  std::vector<std::size_t> last_only(n, 0);
  last_only.back() = count;
  ways.push_back(last_only);
  if (ranks == 1 || count < 10) return ways;
  std::vector<std::size_t> uneven(n, 0);  // the second one empty, the first one short
  uneven[0] = count / 7;
  for (std::size_t r = 2; r < n; ++r) uneven[r] = (count - uneven[0]) / (n - 1);
  uneven.back() += count - std::accumulate(uneven.begin(), uneven.end(), std::size_t{0});
  ways.push_back(uneven);
  return ways;
}

class CommunicatorContract : public testing::TestWithParam<Transport> {
 protected:
  /// Runs `body` on each rank of a group; the text says what failed, and is empty if nothing did.
  std::string run(int size, const std::function<void(Communicator&)>& body) { return failures(results(size, body)); }

  std::vector<RankResult> results(int size, const std::function<void(Communicator&)>& body) {
    static int groups = 0;
    const std::string job = fmt::format("contract-{}-{}", GetParam().run ? 0 : getpid(), groups++);
    const auto rank_body = [&](int rank) {
      const std::unique_ptr<Communicator> comm = GetParam().make(rank, size, job);
      body(*comm);
    };
    return GetParam().run ? GetParam().run(size, rank_body) : run_ranks(GetParam().run_as, size, rank_body);
  }

  /// Element counts to try: around each threshold that is not above `limit` bytes.
  std::vector<std::size_t> counts(DataType type, int size, std::size_t limit) {
    std::vector<std::size_t> all{0, 1, 3, 16, 17, 1000};
    for (const std::size_t bytes : GetParam().thresholds(size)) {
      if (bytes > limit) continue;
      const std::size_t count = bytes / bytes_of(type);
      all.insert(all.end(), {count - 1, count, count + 1});
    }
    return all;
  }
};

// The thread sanitizer is some thirty times slower, and looks for races, not for sums.
#ifdef __SANITIZE_THREAD__
constexpr std::size_t kLargest = 140 * 1024;
#else
constexpr std::size_t kLargest = 1200 * 1024;
#endif

TEST_P(CommunicatorContract, KnowsItsRankAndSize) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  require(comm.size() == 3, "size");
                  require(comm.rank() >= 0 && comm.rank() < 3, "rank");
                  require(std::string(comm.name()).size() > 0, "name");
                }),
            "");
}

TEST_P(CommunicatorContract, AllReduceAddsInRankOrder) {
  for (const int size : {1, 2, 3, 4, 7}) {
    const std::size_t limit = size <= 4 ? kLargest : kLargest / 12;
    for (const DataType type : kAllTypes) {
      const Numbers numbers(type, size, (limit + 8) / bytes_of(type));
      const std::vector<std::size_t> all_counts = counts(type, size, limit);
      EXPECT_EQ(run(size,
                    [&](Communicator& comm) {
                      for (const bool shared : {false, true}) {
                        Buffer buffer(comm, limit + 8, shared);
                        for (const std::size_t count : all_counts) {
                          const Span span = buffer.span(count, type);
                          buffer.fill(numbers.input(comm.rank()), span.bytes());
                          comm.all_reduce_sum(span)->wait();
                          check_equal(span.data, numbers.total(), span.bytes(),
                                      fmt::format("{} {} shared: {}", count, name_of(type), shared));
                        }
                      }
                    }),
                "")
          << size << " ranks, " << name_of(type);
    }
  }
}

TEST_P(CommunicatorContract, ReduceScatterAndAllGatherKeepToTheirSlices) {
  for (const int size : {1, 2, 3, 4, 7}) {
    const std::size_t limit = size <= 3 ? kLargest : kLargest / 12;
    for (const DataType type : kAllTypes) {
      const Numbers numbers(type, size, (limit + 8) / bytes_of(type));
      const std::vector<std::size_t> all_counts = counts(type, size, limit);
      EXPECT_EQ(run(size,
                    [&](Communicator& comm) {
                      const auto me = static_cast<std::size_t>(comm.rank());
                      const std::size_t unit = bytes_of(type);
                      for (const bool shared : {false, true}) {
                        Buffer buffer(comm, limit + 8, shared);
                        for (const std::size_t count : all_counts) {
                          for (const std::vector<std::size_t>& slices : ways_to_cut(count, comm.size())) {
                            const std::string what =
                                fmt::format("{} {} of {}, shared: {}", slices[me], name_of(type), count, shared);
                            const Span span = buffer.span(count, type);
                            std::vector<std::size_t> begin(slices.size() + 1, 0);
                            std::partial_sum(slices.begin(), slices.end(), begin.begin() + 1);

                            buffer.fill(numbers.input(comm.rank()), span.bytes());
                            comm.reduce_scatter_sum(span, slices)->wait();
                            check_equal(buffer.data() + begin[me] * unit, numbers.total(begin[me]), slices[me] * unit,
                                        "reduce_scatter " + what);

                            std::memset(buffer.data(), 0xA5, span.bytes());
                            std::memcpy(buffer.data() + begin[me] * unit, numbers.input(comm.rank(), begin[me]),
                                        slices[me] * unit);
                            comm.all_gather(span, slices)->wait();
                            for (int r = 0; r < comm.size(); ++r) {
                              const std::size_t first = begin[static_cast<std::size_t>(r)];
                              check_equal(buffer.data() + first * unit, numbers.input(r, first),
                                          slices[static_cast<std::size_t>(r)] * unit, "all_gather " + what);
                            }
                          }
                        }
                      }
                    }),
                "")
          << size << " ranks, " << name_of(type);
    }
  }
}

TEST_P(CommunicatorContract, BroadcastReachesAllFromAnyRoot) {
  for (const int size : {1, 2, 3, 4}) {
    for (const DataType type : {DataType::f32, DataType::bf16}) {
      const Numbers numbers(type, size, (kLargest + 8) / bytes_of(type));
      const std::vector<std::size_t> all_counts = counts(type, size, kLargest);
      EXPECT_EQ(run(size,
                    [&](Communicator& comm) {
                      for (const bool shared : {false, true}) {
                        Buffer buffer(comm, kLargest + 8, shared);
                        for (const std::size_t count : all_counts) {
                          for (int root = 0; root < comm.size(); ++root) {
                            const Span span = buffer.span(count, type);
                            buffer.fill(numbers.input(comm.rank()), span.bytes());
                            comm.broadcast(span, root)->wait();
                            check_equal(span.data, numbers.input(root), span.bytes(), fmt::format("{}", count));
                          }
                        }
                      }
                    }),
                "")
          << size << " ranks, " << name_of(type);
    }
  }
}

TEST_P(CommunicatorContract, SumsDoNotDependOnTheSlicing) {
  constexpr std::size_t kCount = 60'000;
  for (const DataType type : kAllTypes) {
    const Numbers numbers(type, 3, kCount);
    EXPECT_EQ(run(3,
                  [&](Communicator& comm) {
                    const std::size_t unit = bytes_of(type);
                    for (const bool shared : {false, true}) {
                      Buffer buffer(comm, kCount * unit + 256, shared);
                      // In shared memory the data need not lie at the same place on all ranks.
                      if (shared) buffer.shift(static_cast<std::size_t>(comm.rank()) * 24);
                      for (unsigned trial = 0; trial < 5; ++trial) {
                        std::mt19937 random(trial);
                        buffer.fill(numbers.input(comm.rank()), kCount * unit);
                        std::vector<std::unique_ptr<Work>> works;
                        for (std::size_t at = 0; at < kCount;) {
                          const std::size_t most = trial < 2 ? 40'000 : 9'000;
                          const std::size_t n = std::min<std::size_t>(kCount - at, 1 + random() % most);
                          works.push_back(comm.all_reduce_sum({buffer.data() + at * unit, n, type}));
                          at += n;
                        }
                        for (const auto& work : works) work->wait();
                        check_equal(buffer.data(), numbers.total(), kCount * unit, fmt::format("trial {}", trial));
                      }
                    }
                  }),
              "")
        << name_of(type);
  }
}

TEST_P(CommunicatorContract, SharedAndOrdinaryMemoryMixAcrossRanks) {
  constexpr std::size_t kCount = 100'000;
  const Numbers numbers(DataType::f32, 3, kCount);
  EXPECT_EQ(run(3,
                [&](Communicator& comm) {
                  Buffer shared(comm, kCount * 4, true), own(comm, kCount * 4, false);
                  Buffer& buffer = comm.rank() == 1 ? shared : own;
                  buffer.fill(numbers.input(comm.rank()), kCount * 4);
                  comm.all_reduce_sum(buffer.span(kCount, DataType::f32))->wait();
                  check_equal(buffer.data(), numbers.total(), kCount * 4, "all_reduce");
                }),
            "");
}

TEST_P(CommunicatorContract, AllocatesZeroedAlignedMemory) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  std::vector<unsigned char*> blocks;
                  const std::vector<std::size_t> sizes{0, 1, 100, 5000, std::size_t{3} << 20};
                  for (const std::size_t bytes : sizes) {
                    blocks.push_back(static_cast<unsigned char*>(comm.allocate(bytes)));
                    require(reinterpret_cast<uintptr_t>(blocks.back()) % 64 == 0, "not aligned");
                    for (std::size_t i = 0; i < bytes; ++i) require(blocks.back()[i] == 0, "not zeroed");
                    std::memset(blocks.back(), comm.rank() + 1, bytes);
                  }
                  comm.barrier()->wait();
                  for (std::size_t b = 0; b < sizes.size(); ++b) {
                    for (std::size_t i = 0; i < sizes[b]; ++i) require(blocks[b][i] == comm.rank() + 1, "overlap");
                  }
                }),
            "");
}

TEST_P(CommunicatorContract, ManyOperationsMayBeUnderWayAndWaitedForInAnyOrder) {
  constexpr std::size_t kCount = 30'000;
  constexpr int kOperations = 40;
  const Numbers numbers(DataType::f32, 4, kCount);
  EXPECT_EQ(
      run(4,
          [&](Communicator& comm) {
            const int next = (comm.rank() + 1) % 4, previous = (comm.rank() + 3) % 4;
            std::vector<Words> sums, sent, received;
            std::vector<std::unique_ptr<Work>> works;
            for (int i = 0; i < kOperations; ++i) {
              const std::size_t count = kCount >> (i % 12);
              sums.push_back(numbers.inputs[static_cast<std::size_t>(comm.rank())]);
              received.push_back(words_for(DataType::f32, count));
              works.push_back(
                  comm.receive({received[static_cast<std::size_t>(i)].data(), count, DataType::f32}, previous, i));
              works.push_back(comm.all_reduce_sum({sums[static_cast<std::size_t>(i)].data(), count, DataType::f32}));
              works.push_back(
                  comm.send({const_cast<uint64_t*>(numbers.inputs[static_cast<std::size_t>(comm.rank())].data()), count,
                             DataType::f32},
                            next, i));
            }
            for (std::size_t i = works.size(); i-- > 0;) works[i]->wait();
            for (int i = 0; i < kOperations; ++i) {
              const std::size_t bytes = (kCount >> (i % 12)) * 4;
              check_equal(sums[static_cast<std::size_t>(i)].data(), numbers.total(), bytes, "sum");
              check_equal(received[static_cast<std::size_t>(i)].data(), numbers.input(previous), bytes, "message");
            }
          }),
      "");
}

TEST_P(CommunicatorContract, AWorkThatIsDroppedStaysUnderWay) {
  EXPECT_EQ(run(2,
                [](Communicator& comm) {
                  std::vector<float> data(50'000, 1.0f);
                  comm.all_reduce_sum({data.data(), data.size(), DataType::f32});
                  comm.barrier()->wait();
                  for (const float value : data) require(value == 2.0f, "wrong sum");
                }),
            "");
}

TEST_P(CommunicatorContract, BothMaySendALotAndWaitForTheSendFirst) {
  constexpr std::size_t kCount = std::size_t{4} << 20;
  EXPECT_EQ(run(2,
                [](Communicator& comm) {
                  const int other = 1 - comm.rank();
                  std::vector<int64_t> mine(kCount, comm.rank()), theirs(kCount, -1);
                  const auto send = comm.send({mine.data(), kCount, DataType::i64}, other, 5);
                  const auto receive = comm.receive({theirs.data(), kCount, DataType::i64}, other, 5);
                  send->wait();
                  receive->wait();
                  for (const int64_t value : theirs) require(value == other, "wrong data");
                }),
            "");
}

TEST_P(CommunicatorContract, MessagesFindTheirTagInAnyOrder) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  constexpr int kTags = 20;
                  const auto length = [](int tag) { return static_cast<std::size_t>(tag) * 3000; };  // 0 among them
                  if (comm.rank() == 2) {
                    for (int from = 0; from < 2; ++from) {
                      for (int tag = kTags - 1; tag >= 0; --tag) {
                        for (int64_t copy = 0; copy < 2; ++copy) {
                          std::vector<int64_t> data(length(tag) + 1, -1);
                          comm.receive({data.data(), length(tag), DataType::i64}, from, tag)->wait();
                          for (std::size_t i = 0; i < length(tag); ++i) {
                            require(data[i] == from * 1000 + tag * 10 + copy, "wrong message");
                          }
                        }
                      }
                    }
                  } else {
                    std::vector<std::vector<int64_t>> data;
                    std::vector<std::unique_ptr<Work>> works;
                    for (int64_t copy = 0; copy < 2; ++copy) {
                      for (int tag = 0; tag < kTags; ++tag) {
                        data.emplace_back(length(tag) + 1, comm.rank() * 1000 + tag * 10 + copy);
                        works.push_back(comm.send({data.back().data(), length(tag), DataType::i64}, 2, tag));
                      }
                    }
                    for (const auto& work : works) work->wait();
                  }
                  comm.barrier()->wait();
                }),
            "");
}

TEST_P(CommunicatorContract, AllPairsMayTalkWhileCollectivesRun) {
  EXPECT_EQ(run(7,
                [](Communicator& comm) {
                  const auto n = static_cast<std::size_t>(comm.size());
                  constexpr std::size_t kCount = 10'000;
                  for (int round = 0; round < 3; ++round) {
                    std::vector<std::vector<int64_t>> out(n, std::vector<int64_t>(kCount, comm.rank())), in = out;
                    std::vector<std::unique_ptr<Work>> works;
                    for (std::size_t r = 0; r < n; ++r) {  // itself among them
                      works.push_back(comm.send({out[r].data(), kCount, DataType::i64}, static_cast<int>(r), round));
                    }
                    int64_t sum = 1;
                    comm.all_reduce_sum({&sum, 1, DataType::i64})->wait();
                    require(sum == comm.size(), "wrong sum");
                    for (std::size_t r = 0; r < n; ++r) {
                      works.push_back(comm.receive({in[r].data(), kCount, DataType::i64}, static_cast<int>(r), round));
                    }
                    for (const auto& work : works) work->wait();
                    for (std::size_t r = 0; r < n; ++r) {
                      require(in[r] == std::vector<int64_t>(kCount, static_cast<int64_t>(r)), "wrong message");
                    }
                  }
                }),
            "");
}

TEST_P(CommunicatorContract, AReceiveOfTheWrongLengthNamesTagAndLengths) {
  EXPECT_EQ(run(2,
                [](Communicator& comm) {
                  std::vector<float> data(100, 1.0f);
                  for (const bool posted_first : {false, true}) {
                    if (comm.rank() == 0) {
                      if (posted_first) comm.barrier()->wait();
                      comm.send({data.data(), 100, DataType::f32}, 1, 9)->wait();
                      if (!posted_first) comm.barrier()->wait();
                      comm.send({data.data(), 10, DataType::f32}, 1, 9)->wait();
                    } else {
                      if (!posted_first) comm.barrier()->wait();
                      const auto wrong = comm.receive({data.data(), 50, DataType::f32}, 0, 9);
                      if (posted_first) comm.barrier()->wait();
                      const std::string text = error_of([&] { wrong->wait(); });
                      for (const char* part : {"tag 9", "400 bytes", "200 bytes"}) require_contains(text, part);
                      comm.receive({data.data(), 10, DataType::f32}, 0, 9)->wait();  // life goes on
                    }
                  }
                }),
            "");
}

TEST_P(CommunicatorContract, DifferentCallsFailOnEveryRankAndNameTheRank) {
  struct Case {
    const char* says;
    std::function<std::unique_ptr<Work>(Communicator&, Span)> usual, odd;
  };
  const Case cases[] = {
      {"rank 1 calls all_reduce of 900 f32 where rank 0 calls broadcast of 900 f32 from rank 0",
       [](Communicator& comm, Span data) { return comm.broadcast(data, 0); },
       [](Communicator& comm, Span data) { return comm.all_reduce_sum(data); }},
      {"rank 1 calls all_reduce of 450 f32 where rank 0 calls all_reduce of 900 f32",
       [](Communicator& comm, Span data) { return comm.all_reduce_sum(data); },
       [](Communicator& comm, Span data) {
         return comm.all_reduce_sum({data.data, data.count / 2, data.type});
       }},
      {"rank 1 calls all_reduce of 900 bf16 where rank 0 calls all_reduce of 900 f32",
       [](Communicator& comm, Span data) { return comm.all_reduce_sum(data); },
       [](Communicator& comm, Span data) {
         return comm.all_reduce_sum({data.data, data.count, DataType::bf16});
       }},
      {"rank 1 calls broadcast of 900 f32 from rank 2 where rank 0 calls broadcast of 900 f32 from rank 0",
       [](Communicator& comm, Span data) { return comm.broadcast(data, 0); },
       [](Communicator& comm, Span data) { return comm.broadcast(data, 2); }},
      {"rank 1 calls all_gather of 900 f32",
       [](Communicator& comm, Span data) {
         return comm.all_gather(data, {300, 300, 300});
       },
       [](Communicator& comm, Span data) {
         return comm.all_gather(data, {300, 301, 299});
       }},
      {"rank 1 calls barrier where rank 0 calls all_reduce of 900 f32",
       [](Communicator& comm, Span data) { return comm.all_reduce_sum(data); },
       [](Communicator& comm, Span) { return comm.barrier(); }}};
  for (const Case& test : cases) {
    EXPECT_EQ(run(3,
                  [&](Communicator& comm) {
                    std::vector<float> data(900, 1.0f);
                    const Span span{data.data(), data.size(), DataType::f32};
                    const std::string text =
                        error_of([&] { (comm.rank() == 1 ? test.odd : test.usual)(comm, span)->wait(); });
                    require_contains(text, test.says);
                    require(error_of([&] { comm.barrier()->wait(); }) == text, "a later wait does not fail alike");
                  }),
              "");
  }
}

TEST_P(CommunicatorContract, ADifferentCallIsFoundAfterManyThatAgree) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  std::vector<float> data(900, 1.0f);
                  const Span span{data.data(), data.size(), DataType::f32};
                  for (int round = 0; round < 20; ++round) {
                    comm.all_reduce_sum(span)->wait();
                    comm.broadcast(span, round % 3);  // nobody waits for it
                    comm.all_gather(span, {0, 900, 0});
                    comm.reduce_scatter_sum(span, {0, 0, 900})->wait();
                  }
                  const std::string text = error_of([&] {
                    (comm.rank() == 2 ? comm.barrier() : comm.all_reduce_sum({data.data(), 5, span.type}))->wait();
                  });
                  require_contains(text, "rank 2 calls barrier where rank 0 calls all_reduce of 5 f32");
                }),
            "");
}

TEST_P(CommunicatorContract, ImpossibleArgumentsAreAnErrorAtOnce) {
  EXPECT_EQ(run(2,
                [](Communicator& comm) {
                  std::vector<float> data(10, 1.0f);
                  const Span span{data.data(), data.size(), DataType::f32};
                  require_contains(error_of([&] { comm.broadcast(span, 2); }), "rank 2");
                  require_contains(error_of([&] { comm.send(span, -1, 0); }), "rank -1");
                  require_contains(error_of([&] { comm.all_gather(span, {5, 6}); }), "11 elements");
                  require_contains(error_of([&] { comm.reduce_scatter_sum(span, {10}); }), "1 slices");
                  comm.barrier()->wait();
                }),
            "");
}

TEST_P(CommunicatorContract, AbortEndsEveryWaitWithTheReason) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  float value = 0;
                  if (comm.rank() == 1) {
                    const auto pending = comm.receive({&value, 1, DataType::f32}, 0, 1);
                    // From another thread, while this one waits.
                    std::thread other([&] { comm.abort("the disk is full"); });
                    const std::string text = error_of([&] { pending->wait(); });
                    other.join();
                    require_contains(text, "the disk is full");
                    comm.abort("again");
                  } else {
                    const auto pending = comm.receive({&value, 1, DataType::f32}, 2 - comm.rank(), 1);
                    const std::string text = error_of([&] { comm.barrier()->wait(); });
                    require_contains(text, "rank 1 of 3 stopped: the disk is full");
                    require_contains(error_of([&] { pending->wait(); }), "the disk is full");
                    require_contains(error_of([&] { comm.barrier()->wait(); }), "the disk is full");
                  }
                }),
            "");
}

TEST_P(CommunicatorContract, RanksThatFinishTogetherLetTheSlowestComeBeforeOneAborts) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  int64_t verdict = 7;
                  const Span span{&verdict, 1, DataType::i64};
                  if (comm.rank() == 0) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                    comm.send(span, 1, 1)->wait();
                  }
                  if (comm.rank() == 1) comm.receive(span, 0, 1)->wait();
                  finish_together(comm);
                  if (comm.rank() == 2) comm.abort("all know");
                }),
            "");
}

TEST_P(CommunicatorContract, LeavingEarlyFailsThoseWhoStillWait) {
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  comm.barrier()->wait();
                  if (comm.rank() == 1) return;
                  require_contains(error_of([&] { comm.barrier()->wait(); }), "rank 1 of 3");
                }),
            "");
  EXPECT_EQ(run(3,
                [](Communicator& comm) {
                  float value = static_cast<float>(comm.rank());
                  const Span span{&value, 1, DataType::f32};
                  if (comm.rank() == 1) {
                    comm.send(span, 0, 7)->wait();
                  } else if (comm.rank() == 0) {
                    float first = 0, second = 0;
                    const auto comes = comm.receive({&first, 1, DataType::f32}, 1, 7);
                    const auto never_comes = comm.receive({&second, 1, DataType::f32}, 1, 7);
                    const std::string text = error_of([&] { never_comes->wait(); });
                    require_contains(text, "rank 1 of 3");
                    comes->wait();
                    require(first == 1.0f, "what was sent before leaving must arrive");
                  }
                }),
            "");
}

TEST_P(CommunicatorContract, MayBeDestroyedWithOperationsPending) {
  // Only rank 0 of this group starts anything.
  EXPECT_EQ(run(2,
                [](Communicator& comm) {
                  if (comm.rank() == 1) return;
                  static std::vector<float> data(1'000'000, 1.0f);
                  comm.all_reduce_sum({data.data(), data.size(), DataType::f32});
                  comm.send({data.data(), data.size(), DataType::f32}, 1, 1);
                  comm.receive({data.data(), data.size(), DataType::f32}, 1, 1);
                }),
            "");
}

/// What happens when a rank is killed: for transports whose ranks are processes.
class KilledRankContract : public CommunicatorContract {};

struct Death {
  std::atomic<int64_t> time;  // steady clock, nanoseconds
};

inline int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

inline void die(SharedPage& page) {
  page.as<Death>().time = now_ns();
  raise(SIGKILL);
}

/// Repeats `work` until it throws; then the text must name the dead rank, and 2 s must not have passed since it died.
inline void expect_death_noticed(SharedPage& page, const std::string& name, const std::function<void()>& work) {
  const std::string text = error_of([&] {
    while (true) work();
  });
  const int64_t death = page.as<Death>().time;
  require(death != 0, "failed before anybody died: " + text);
  require(now_ns() - death < 2'000'000'000, fmt::format("noticed only after {} ms", (now_ns() - death) / 1'000'000));
  require_contains(text, name);
}

TEST_P(KilledRankContract, AKilledRankFailsTheOthersWithinTwoSeconds) {
  for (const int victim : {0, 2}) {
    const std::string name = fmt::format("rank {} of 4", victim);
    using Act = std::function<void(Communicator&)>;
    const auto check = [&](const char* what, const Act& of_victim, const Act& of_others) {
      SharedPage page;
      const auto all = results(4, [&](Communicator& comm) {
        comm.barrier()->wait();
        if (comm.rank() == victim) {
          of_victim(comm);
          die(page);
        }
        expect_death_noticed(page, name, [&] { of_others(comm); });
      });
      for (int r = 0; r < 4; ++r) {
        const RankResult& result = all[static_cast<std::size_t>(r)];
        if (r == victim)
          EXPECT_EQ(result.signal, SIGKILL) << what << ": " << result.text;
        else
          EXPECT_EQ(result.text, "") << what << ", rank " << r;
      }
    };
    std::vector<float> data(3'000'000, 1.0f);
    const Span small{data.data(), 100, DataType::f32}, large{data.data(), data.size(), DataType::f32};
    const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    check(
        "before a collective", [&](Communicator&) { nap(); },
        [&](Communicator& comm) { comm.all_reduce_sum(small)->wait(); });
    check(
        "having begun a collective",
        [&](Communicator& comm) {
          for (int i = 0; i < 2; ++i) comm.all_reduce_sum(large)->wait();
          comm.all_reduce_sum(large);
          comm.send(small, (comm.rank() + 1) % 4, 3);
        },
        [&](Communicator& comm) { comm.all_reduce_sum(large)->wait(); });
    check(
        "during a receive", [&](Communicator&) { nap(); },
        [&](Communicator& comm) { comm.receive(small, (comm.rank() + 1) % 4, 1)->wait(); });
    check(
        "during a large send", [&](Communicator&) { nap(); },
        [&](Communicator& comm) { comm.send(large, victim, 1)->wait(); });
  }
}

TEST_P(KilledRankContract, AKillAtAnyMomentOfACollectiveIsNoticed) {
  for (int trial = 0; trial < 4; ++trial) {
    SharedPage page;
    std::vector<float> data(500'000, 1.0f);
    const auto all = results(3, [&](Communicator& comm) {
      comm.barrier()->wait();
      if (comm.rank() == 1) {
        // Another thread as the killer: the rank itself is in the middle of its work.
        const pid_t self = getpid();
        std::thread killer([&, self] {
          std::this_thread::sleep_for(std::chrono::microseconds(20'000 + 1'700 * trial));
          page.as<Death>().time = now_ns();
          kill(self, SIGKILL);
        });
        while (true) comm.all_reduce_sum({data.data(), data.size(), DataType::f32})->wait();
      }
      expect_death_noticed(page, "rank 1 of 3", [&] {
        comm.all_reduce_sum({data.data(), data.size(), DataType::f32})->wait();
      });
    });
    EXPECT_EQ(all[0].text, "");
    EXPECT_EQ(all[2].text, "");
  }
}

}  // namespace tutti::test
