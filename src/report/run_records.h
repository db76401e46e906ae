#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "report/cell.h"

namespace tutti {

/// Puts the records that `tutti train` writes together to a cell, one record at a time; of a resumed run, the parts.
class RunRecords {
 public:
  /// Records that say nothing for a report are passed over. One that is not as `tutti train` writes it throws Error.
  void add(const nlohmann::json& record);
  /// None where no run began. A run without a summary has not come to its end: that is a failed cell.
  std::optional<Cell> cell() const;

 private:
  void begin(const nlohmann::json& record);
  void add_epoch(const nlohmann::json& record);

  Cell cell_;
  std::vector<RateAtStep> rates_;  // since the last epoch ended
  bool is_begun_ = false;
  bool is_over_ = false;
};

}  // namespace tutti
