#include "watch/step_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double mean(double a, double b) {
  if (std::isnan(a)) return b;
  return std::isnan(b) ? a : (a + b) / 2;
}

/// Each pair of numbers becomes one; the last half stays as it is, so that what is recent keeps all its detail.
template <typename Join>
void halve_first_half(std::vector<double>& numbers, Join join) {
  const std::size_t pairs = numbers.size() / 4;
  for (std::size_t i = 0; i < pairs; ++i) numbers[i] = join(numbers[2 * i], numbers[2 * i + 1]);
  numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(pairs),
                numbers.begin() + static_cast<std::ptrdiff_t>(2 * pairs));
}

json tail(const std::vector<double>& numbers, std::size_t row) {
  return std::vector<double>(numbers.begin() + static_cast<std::ptrdiff_t>(row), numbers.end());
}

}  // namespace

void StepTable::resize(std::size_t rows) {
  steps_.resize(rows, kNone);
  times_.resize(rows, kNone);
  for (auto& [name, numbers] : columns_) numbers.resize(rows, kNone);
}

void StepTable::halve() {
  const auto last = [](double, double b) { return b; };
  halve_first_half(steps_, last);
  halve_first_half(times_, last);
  for (auto& [name, numbers] : columns_) halve_first_half(numbers, mean);
}

bool StepTable::add(int64_t step, double time_s, const Numbers& numbers) {
  const bool is_full = rows() >= kMostRows;
  if (is_full) halve();
  resize(rows() + 1);
  steps_.back() = static_cast<double>(step);
  times_.back() = time_s;
  for (const auto& [name, number] : numbers) {
    const auto found = columns_.find(name);
    if (found != columns_.end())
      found->second.back() = number;
    else if (columns_.size() < kMostColumns) {
      std::vector<double>& column = columns_[name];
      column.resize(rows(), kNone);
      column.back() = number;
    }
  }
  return !is_full;
}

bool StepTable::go_back_to(int64_t step) {
  std::size_t kept = rows();
  while (kept > 0 && steps_[kept - 1] > static_cast<double>(step)) --kept;
  if (kept == rows()) return true;
  resize(kept);
  return false;
}

json StepTable::from(std::size_t row) const {
  row = std::min(row, rows());
  json columns = json::object();
  for (const auto& [name, numbers] : columns_) columns[name] = tail(numbers, row);
  return {{"from", row}, {"step", tail(steps_, row)}, {"time", tail(times_, row)}, {"columns", std::move(columns)}};
}

}  // namespace tutti
