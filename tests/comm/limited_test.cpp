#include "comm/limited.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/shm/shm.h"
#include "support/ranks.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;

TEST(LimitedLinks, TakeAtLeastAsLongAsARingOverThem) {
  const auto results = test::run_ranks(test::RunAs::threads, 2, [](int rank) {
    ShmOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = "limited-" + std::to_string(::getpid());
    const auto comm = limit_links(make_shm_communicator(options), {1ms, 100e6});
    std::vector<float> data(250'000, static_cast<float>(rank + 1));
    const Span span{data.data(), data.size(), DataType::f32};
    const std::vector<std::size_t> halves = {125'000, 125'000};
    const auto expect = [&](std::unique_ptr<Work> work, std::chrono::nanoseconds least, float sum) {
      const auto start = std::chrono::steady_clock::now();
      work->wait();
      test::require(std::chrono::steady_clock::now() - start >= least, "too fast for the link");
      test::require(data[static_cast<std::size_t>(rank) * 125'000] == sum, "wrong sum");
    };
    expect(comm->all_reduce_sum(span), 11ms, 3);  // 1 ms, and 2 · 1/2 · 1 MB at 100 MB/s
    expect(comm->reduce_scatter_sum(span, halves), 5500us, 6);
    expect(comm->all_gather(span, halves), 5500us, 6);
    comm->barrier()->wait();
  });
  EXPECT_EQ(test::failures(results), "");
}

}  // namespace
}  // namespace tutti
