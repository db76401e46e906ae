#pragma once

#include "comm/communicator.h"
#include "plan/links.h"

namespace tutti {

/// Measures what an all-reduce costs between these ranks, from small messages up to `largest_bytes` or as far as about
/// a second goes, and fits a cost to it. A collective; every rank gets rank 0's figures.
Links measure_links(Communicator& comm, int64_t largest_bytes);

}  // namespace tutti
