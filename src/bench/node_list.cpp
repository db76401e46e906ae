#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "bench/cell_record.h"

namespace tutti::bench {
namespace {

/// "gn" and "02" of gn02.
std::pair<std::string, std::string> split(const std::string& host) {
  std::size_t digits = host.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(host[digits - 1])) != 0) --digits;
  return {host.substr(0, digits), host.substr(digits)};
}

bool follows(const std::string& first, const std::string& second) {
  return first.size() == second.size() && first.size() < 10 && std::stol(first) + 1 == std::stol(second);
}

/// "1,3-5"
std::string ranges(const std::vector<std::string>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin;
    while (end + 1 < numbers.size() && follows(numbers[end], numbers[end + 1])) ++end;
    text += (text.empty() ? "" : ",") + numbers[begin] + (end > begin ? "-" + numbers[end] : "");
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::string node_list(std::vector<std::string> hosts) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  std::map<std::string, std::vector<std::string>> by_prefix;
  for (const std::string& host : hosts) {
    const auto [prefix, number] = split(host);
    by_prefix[prefix].push_back(number);
  }
  std::string text;
  for (auto& [prefix, numbers] : by_prefix) {
    // "9" before "10", as people count.
    std::stable_sort(numbers.begin(), numbers.end(),
                     [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    if (!text.empty()) text += ",";
    if (numbers.size() == 1) {
      text += prefix + numbers[0];
      continue;
    }
    if (numbers[0].empty()) {  // "gn" itself, which has no place in the brackets
      text += prefix + ",";
      numbers.erase(numbers.begin());
    }
    text += numbers.size() == 1 ? prefix + numbers[0] : fmt::format("{}[{}]", prefix, ranges(numbers));
  }
  return text;
}

}  // namespace tutti::bench
