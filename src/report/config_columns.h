#pragma once

#include <string>
#include <vector>

#include "record/cell.h"
#include "report/table.h"

namespace tutti {

/// A setting as a column of a table.
struct ConfigColumn {
  TableColumn column;
  TableValue (*value)(const Configuration& config);
};

/// Those of `keys` that any of `configs` states, in this order, then every other setting in which `configs` differ, but
/// for `left_out`.
std::vector<ConfigColumn> config_columns(const std::vector<const Configuration*>& configs,
                                         const std::vector<std::string>& keys,
                                         const std::vector<std::string>& left_out);

/// "GPUs" where that is what ranks are, else "ranks".
std::string rank_word(const std::vector<const Configuration*>& configs);

}  // namespace tutti
