#include "sweep/sweep.h"

#include <algorithm>
#include <cstdlib>

#include "tutti/error.h"

namespace tutti::sweep {

bool matches(const Pattern& pattern, const Settings& settings) {
  return std::all_of(pattern.begin(), pattern.end(), [&](const auto& entry) {
    const auto found = settings.find(entry.first);
    return found != settings.end() && entry.second.count(found->second) > 0;
  });
}

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = {"model",     "batch",     "data",  "strategy", "wire",
                                                 "transport", "network",   "ranks", "nodes",    "servers",
                                                 "workers",   "precision", "device"};
  return names;
}

double number_setting(const std::string& what, const std::string& text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  constexpr double kMost = 1e9;
  if (text.empty() || *end != '\0' || !(value >= least && value <= kMost))
    throw UsageError("{} is '{}': a number from {:g} to {:g} is needed", what, text, least, kMost);
  return value;
}

}  // namespace tutti::sweep
