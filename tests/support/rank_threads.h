#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "comm/shm/shm.h"
#include "support/ranks.h"

namespace tutti {

/// Runs `body` as every rank of a shm group, each rank a thread of this process: enough where the transport is not what
/// is tested, and visible to the thread sanitizer. Returns what each rank threw ("" when nothing), by rank.
inline std::vector<std::string> run_rank_threads(int ranks, const std::function<void(Communicator&)>& body,
                                                 const WaitLimits& limits = {}) {
  static std::atomic<int> groups{0};
  const std::string job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(groups++);
  const auto results = test::run_ranks(test::RunAs::threads, ranks, [&](int rank) {
    ShmOptions options;
    options.rank = rank;
    options.size = ranks;
    options.job = job;
    options.progress_thread = false;
    options.limits = limits;
    const auto comm = make_shm_communicator(options);
    try {
      body(*comm);
      comm->barrier()->wait();  // nobody leaves while others still need them
    } catch (const std::exception& error) {
      comm->abort(error.what());
      throw;
    }
  });
  std::vector<std::string> errors;
  for (const test::RankResult& result : results) errors.push_back(result.text);
  return errors;
}

}  // namespace tutti
