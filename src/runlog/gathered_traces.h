#pragma once

#include <vector>

#include "base/trace.h"
#include "tutti/communicator.h"

namespace tutti {

/// Every rank's traced steps, on every rank. With several machines, their clocks are compared too. Collective, while
/// the communication threads are idle.
std::vector<RankTrace> gather_traces(const Trace& mine, Communicator& comm, bool are_several_machines);

}  // namespace tutti
