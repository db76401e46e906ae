#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

/// Numbers of steps, from which curves are drawn: a row for each moment, a column for each name. What a row does not
/// have is NaN, null in JSON. It stays small however long the run is: when it is full, older rows become means of two.
class StepTable {
 public:
  static constexpr std::size_t kMostRows = 8192;
  static constexpr std::size_t kMostColumns = 48;  // names from a file could be without end; more are passed over

  using Numbers = std::vector<std::pair<std::string, double>>;
  /// False where rows before it are other ones now.
  bool add(int64_t step, double time_s, const Numbers& numbers);
  /// The run went back to this step: removes what came after it. False where there was something.
  bool go_back_to(int64_t step);

  std::size_t rows() const { return steps_.size(); }
  /// {"from": row, "step": […], "time": […], "columns": {name: […]}}, from that row on.
  nlohmann::json from(std::size_t row) const;

 private:
  void halve();
  void resize(std::size_t rows);

  std::vector<double> steps_, times_;
  std::map<std::string, std::vector<double>> columns_;
};

}  // namespace tutti
