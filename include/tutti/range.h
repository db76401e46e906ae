#pragma once

#include <fmt/format.h>

#include <limits>
#include <string>

namespace tutti {

/// The numbers that an option may have.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;  // above `least`, and not that itself
  bool without_most = false;

  bool has(double value) const {
    return (without_least ? value > least : value >= least) && (without_most ? value < most : value <= most);
  }

  /// "at least 0 and below 1"; "" for any.
  std::string describe() const {
    const bool has_least = least > -std::numeric_limits<double>::infinity();
    const bool has_most = most < std::numeric_limits<double>::infinity();
    if (has_least && has_most && !without_least && !without_most) return fmt::format("from {:g} to {:g}", least, most);
    const std::string lower = has_least ? fmt::format("{} {:g}", without_least ? "above" : "at least", least) : "";
    const std::string upper = has_most ? fmt::format("{} {:g}", without_most ? "below" : "at most", most) : "";
    return lower + (has_least && has_most ? " and " : "") + upper;
  }
};

inline Range at_least(double least) { return {least}; }
inline Range above(double least) { return {least, std::numeric_limits<double>::infinity(), true}; }
inline Range from_to(double least, double most) { return {least, most}; }

}  // namespace tutti
