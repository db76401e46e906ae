#pragma once

#include "comm/communicator.h"
#include "comm/ps/push_pull.h"
#include "plan/links.h"

namespace tutti {

/// Measures what an all-reduce costs between these ranks, and with `servers` (or null) a push_pull, from small messages
/// up to `largest_bytes` or as far as about a second goes, and fits costs to them. A collective; every rank gets rank
/// 0's figures.
Links measure_links(Communicator& comm, PushPull* servers, int64_t largest_bytes);

}  // namespace tutti
