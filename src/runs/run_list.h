#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/table.h"
#include "runs/run_facts.h"

namespace tutti {

/// What `tutti runs` shows: a row for each run.
Table run_table(const std::vector<RunFacts>& runs);
/// It for a terminal that is `width` wide (0: any width).
std::string run_list(const std::vector<RunFacts>& runs, std::size_t width);
nlohmann::json to_json(const std::vector<RunFacts>& runs);

}  // namespace tutti
