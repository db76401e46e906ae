#pragma once

#include <string>
#include <vector>

#include "comm/nodes.h"
#include "tutti/records.h"

namespace tutti {

/// Completes the record of an epoch with what follows from what its ranks say.
void sum_up(EpochRecord& epoch, const std::vector<Node>& nodes);
/// The medians of the first, second and last third of an epoch's steps; none where these are too few to tell.
std::vector<double> medians_of_thirds(const std::vector<double>& steps);
/// Ranks whose own part of a step took over 20 % longer than the median of the others, in every third of the epoch.
std::vector<int> find_stragglers(const std::vector<RankEpoch>& ranks);
/// By how much a rank's own part of a step is longer than the median of the others'; 0.25: a quarter.
double extra_time(const std::vector<RankEpoch>& ranks, std::size_t rank, std::size_t third);
/// Whether what ranks did by themselves in the epoch took one of them over a fifth longer than another.
bool ranks_differ(const std::vector<RankEpoch>& ranks);
/// It for people; `headline` is what the test came to. `all`: what each rank and node did, also where they are alike.
std::vector<std::string> epoch_lines(const EpochRecord& epoch, const std::string& headline, bool all);

/// The part of a run's summary that follows from what its ranks say: times are the slowest rank's.
SummaryRecord summary_of_ranks(std::vector<RankSummary> ranks, int64_t samples, int64_t steady_samples);

/// Of this process, so far.
int64_t peak_rss_bytes();

}  // namespace tutti
