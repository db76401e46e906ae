#include "comm/exchange.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/shm/shm.h"
#include "support/ranks.h"

namespace tutti::test {
namespace {

/// What went wrong on any of three ranks; empty if nothing did.
std::string on_three_ranks(const std::string& name, const std::function<void(Communicator&)>& body) {
  return failures(run_ranks(RunAs::threads, 3, [&](int rank) {
    ShmOptions options;
    options.rank = rank;
    options.size = 3;
    options.job = fmt::format("exchange-{}-{}", ::getpid(), name);
    body(*make_shm_communicator(options));
  }));
}

// Texts travel in words of eight bytes.
const std::vector<std::string> kTexts = {
    "", "1", "1234567", "12345678", "123456789", "sixteen bytes it", "seventeen bytes :"};

TEST(Exchange, BringsTheTextOfAnyRootToAllRanks) {
  EXPECT_EQ(on_three_ranks("broadcast",
                           [](Communicator& comm) {
                             for (int root = 0; root < 3; ++root) {
                               for (const std::string& text : kTexts) {
                                 const std::string mine =
                                     comm.rank() == root ? text : "of rank " + std::to_string(comm.rank());
                                 const std::string got = broadcast_text(comm, mine, root);
                                 require(got == text, fmt::format("root {}: '{}' instead of '{}'", root, got, text));
                               }
                             }
                           }),
            "");
}

TEST(Exchange, GathersTextsOfUnequalLengthsInRankOrder) {
  EXPECT_EQ(on_three_ranks("gather",
                           [](Communicator& comm) {
                             for (std::size_t first = 0; first < kTexts.size(); ++first) {
                               const auto text_of = [&](int rank) {
                                 return kTexts[(first + 3 * static_cast<std::size_t>(rank)) % kTexts.size()];
                               };
                               const std::vector<std::string> want = {text_of(0), text_of(1), text_of(2)};
                               require(gather_texts(comm, text_of(comm.rank())) == want,
                                       fmt::format("wrong from {}", first));
                             }
                           }),
            "");
}

TEST(Exchange, GathersNumbersInRankOrder) {
  EXPECT_EQ(
      on_three_ranks("numbers",
                     [](Communicator& comm) {
                       const std::vector<std::vector<int64_t>> want = {{0, -1}, {10, -2}, {20, -3}};
                       require(gather_numbers(comm, {10 * comm.rank(), -1 - comm.rank()}) == want, "wrong numbers");
                       require(gather_numbers(comm, {}) == std::vector<std::vector<int64_t>>(3), "not nothing");
                     }),
      "");
}

}  // namespace
}  // namespace tutti::test
