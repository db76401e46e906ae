#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

// Small things that ranks tell each other outside the hot path. All are collectives.

/// Rank `root`'s text, on every rank.
std::string broadcast_text(Communicator& comm, const std::string& text, int root = 0);

/// Every rank's text, in rank order, on every rank.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& text);

/// Every rank's numbers, in rank order; all ranks bring equally many.
std::vector<std::vector<int64_t>> gather_numbers(Communicator& comm, const std::vector<int64_t>& numbers);

/// For ranks that have all learnt the same, that the job is over: returns when each of them has. Without it, one that
/// leaves early, with an abort, interrupts others that are still learning why.
void finish_together(Communicator& comm);

}  // namespace tutti
