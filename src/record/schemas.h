#pragma once

#include "record/schema.h"
#include "tutti/records.h"

namespace tutti {

const Schema<Environment>& schema(const Environment*);
const Schema<NodeRanks>& schema(const NodeRanks*);
const Schema<RunConfig>& schema(const RunConfig*);
const Schema<RunRecord>& schema(const RunRecord*);
const Schema<TriedPlan>& schema(const TriedPlan*);
const Schema<SearchRecord>& schema(const SearchRecord*);
const Schema<PlanRecord>& schema(const PlanRecord*);
const Schema<ProgressRecord>& schema(const ProgressRecord*);
const Schema<RankEpoch>& schema(const RankEpoch*);
const Schema<NodeEpoch>& schema(const NodeEpoch*);
const Schema<TestResults>& schema(const TestResults*);
const Schema<EpochRecord>& schema(const EpochRecord*);
const Schema<RankBreakdown>& schema(const RankBreakdown*);
const Schema<TransferBreakdown>& schema(const TransferBreakdown*);
const Schema<StepBreakdown>& schema(const StepBreakdown*);
const Schema<CheckpointRecord>& schema(const CheckpointRecord*);
const Schema<EndRecord>& schema(const EndRecord*);
const Schema<RankSummary>& schema(const RankSummary*);
const Schema<SummaryRecord>& schema(const SummaryRecord*);

}  // namespace tutti
