#include "base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/utf8.h"

namespace tutti {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Levenshtein, plus swapped neighbours as one edit: the slip of a hurried hand.
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

}  // namespace

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("unknown {} '{}'{} Known: {}.", kind, name, hint.empty() ? "." : hint, fmt::join(known, ", "));
}

std::string problem_of_folder_name(std::string_view name) {
  constexpr std::size_t kLongest = 240;  // file systems have room for 255 bytes, and some names get an ending
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 127; };
  if (name.empty()) return "it is empty";
  if (name.size() > kLongest) return fmt::format("it has {} bytes, more than {}", name.size(), kLongest);
  if (!is_utf8(name)) return "its bytes are no UTF-8 text";
  if (std::any_of(name.begin(), name.end(), is_control)) return "it has a line end or another control character in it";
  if (name.find('/') != std::string_view::npos) return "it has a '/' in it";
  if (name == "." || name == "..") return "it means another folder";
  return "";
}

bool is_host_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@";
  constexpr std::size_t kLongest = 255;
  return !name.empty() && name.size() <= kLongest && name.front() != '-' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace tutti
