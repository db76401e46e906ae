#include "record/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace tutti {
namespace {

constexpr std::size_t kMostDigits = 9;     // of a number in a name
constexpr std::size_t kMostNodes = 65536;  // more than any cluster has: a typing error

bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= kMostDigits && std::all_of(text.begin(), text.end(), is_decimal);
}

/// Splits at commas outside of brackets; none where brackets do not match.
std::optional<std::vector<std::string>> split(const std::string& list) {
  std::vector<std::string> parts(1);
  bool is_inside = false;
  for (const char c : list) {
    if ((c == '[' && is_inside) || (c == ']' && !is_inside)) return std::nullopt;
    if (c == '[' || c == ']') is_inside = c == '[';
    if (c == ',' && !is_inside)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (is_inside) return std::nullopt;
  return parts;
}

/// Adds what "01-03,07" stands for behind `prefix`.
bool expand_numbers(const std::string& prefix, const std::string& numbers, std::vector<std::string>& names) {
  for (std::size_t begin = 0; begin <= numbers.size();) {
    const std::size_t comma = std::min(numbers.find(',', begin), numbers.size());
    const std::string range = numbers.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    if (!is_number(first) || !is_number(last)) return false;
    const int64_t from = std::stoll(first), to = std::stoll(last);
    if (to < from || to - from >= static_cast<int64_t>(kMostNodes - names.size())) return false;
    for (int64_t i = from; i <= to; ++i) names.push_back(fmt::format("{}{:0{}}", prefix, i, first.size()));
  }
  return true;
}

}  // namespace

std::string compress_node_list(std::vector<std::string> hosts) {
  // Names with the same prefix and number of digits go into one bracket; others stand alone.
  std::map<std::pair<std::string, std::size_t>, std::set<int64_t>> numbered;
  std::set<std::string> names(hosts.begin(), hosts.end());
  std::map<std::string, std::string> parts;  // by prefix, so that the order is that of names
  for (const std::string& name : names) {
    std::size_t digits = 0;
    while (digits < name.size() && digits < kMostDigits && is_decimal(name[name.size() - 1 - digits])) ++digits;
    if (digits == 0)
      parts[name] = name;
    else
      numbered[{name.substr(0, name.size() - digits), digits}].insert(std::stoll(name.substr(name.size() - digits)));
  }
  for (const auto& [prefix_digits, numbers] : numbered) {
    const auto& [prefix, digits] = prefix_digits;
    std::string inside;
    for (auto at = numbers.begin(); at != numbers.end();) {
      const int64_t first = *at;
      int64_t last = first;
      for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
      inside += fmt::format("{}{:0{}}", inside.empty() ? "" : ",", first, digits);
      if (last > first) inside += fmt::format("-{:0{}}", last, digits);
    }
    parts[fmt::format("{}{}", prefix, digits)] =
        numbers.size() == 1 ? prefix + inside : fmt::format("{}[{}]", prefix, inside);
  }
  std::string list;
  for (const auto& [ignored, part] : parts) list += (list.empty() ? "" : ",") + part;
  return list;
}

std::optional<std::vector<std::string>> expand_node_list(const std::string& list) {
  const auto parts = split(list);
  if (!parts) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& part : *parts) {
    const std::size_t open = part.find('[');
    if (part.empty() || open == 0) return std::nullopt;
    if (open == std::string::npos) {
      names.push_back(part);
    } else if (part.back() != ']' ||
               !expand_numbers(part.substr(0, open), part.substr(open + 1, part.size() - open - 2), names)) {
      return std::nullopt;
    }
    if (names.size() > kMostNodes) return std::nullopt;
  }
  return names;
}

}  // namespace tutti
