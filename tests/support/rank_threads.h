#pragma once

#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/shm/shm.h"

namespace tutti {

/// Runs `body` as every rank of a shm group, each rank a thread of this process: enough where the transport is not what
/// is tested, and visible to the thread sanitizer. Returns what each rank threw ("" when nothing), by rank.
inline std::vector<std::string> run_rank_threads(int ranks, const std::function<void(Communicator&)>& body) {
  static std::atomic<int> groups{0};
  const std::string job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(groups++);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ShmOptions options;
        options.rank = rank;
        options.size = ranks;
        options.job = job;
        options.progress_thread = false;
        const auto comm = make_shm_communicator(options);
        try {
          body(*comm);
          comm->barrier()->wait();  // nobody leaves while others still need them
        } catch (const std::exception& error) {
          comm->abort(error.what());
          throw;
        }
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace tutti
