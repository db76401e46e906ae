#pragma once

#include <chrono>
#include <memory>

#include "tutti/communicator.h"

namespace tutti {

/// A link to pretend: for experiments with slow networks on one machine.
struct LinkLimit {
  std::chrono::nanoseconds startup{0};  // of each collective
  double bytes_per_s = 0;               // of each rank's link; 0: no limit
};

/// The same communicator with collectives that take at least as long as a ring over such links would: an all-reduce of
/// n bytes on P ranks startup + 2 (P-1)/P n / rate, its halves half of that, a broadcast n / rate. Messages between two
/// ranks and barriers are not delayed.
std::unique_ptr<Communicator> limit_links(std::unique_ptr<Communicator> comm, const LinkLimit& limit);

}  // namespace tutti
