#pragma once

#include <string>
#include <vector>

#include "comm/nodes.h"
#include "tutti/records.h"

namespace tutti {

/// Completes the record of an epoch with what follows from what its ranks say.
void sum_up(EpochRecord& epoch, const std::vector<Node>& nodes);
/// It for people; `headline` is what the test came to.
std::vector<std::string> epoch_lines(const EpochRecord& epoch, const std::string& headline);

/// The part of a run's summary that follows from what its ranks say: times are the slowest rank's.
SummaryRecord summary_of_ranks(std::vector<RankSummary> ranks, int64_t samples, int64_t steady_samples);

/// Of this process, so far.
int64_t peak_rss_bytes();

}  // namespace tutti
