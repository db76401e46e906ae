#pragma once

#include "comm/ps/push_pull.h"
#include "tutti/communicator.h"
#include "tutti/links.h"

namespace tutti {

struct LinkProbe {
  bool all_operations = false;  // reduce_scatter and all_gather too, not all_reduce alone
  PushPull* servers = nullptr;  // with them, push_pull too
};

/// Measures what messages between these ranks cost, from small ones up to as large as `memory` (the communicator's own)
/// or as far as about a second goes, and fits costs to them. A collective; every rank gets rank 0's figures.
Links measure_links(Communicator& comm, const LinkProbe& probe, Span memory);

}  // namespace tutti
