#pragma once

#include <string>
#include <vector>

#include "tune/strategy_search.h"
#include "tutti/records.h"

namespace tutti {

/// For records: what was tried, predicted and measured.
SearchRecord describe_search(const StrategySearch& search);

/// For people: the winner and what it won against.
std::vector<std::string> search_lines(const StrategySearch& search);

}  // namespace tutti
