#include "cli/hold_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti {

bool is_held_out(const Names& names, const Names& held_out) {
  return std::find_first_of(names.begin(), names.end(), held_out.begin(), held_out.end()) != names.end();
}

void check_held_out(const Names& held_out, const std::set<std::string>& known) {
  Names unknown;
  for (const std::string& name : held_out)
    if (known.count(name) == 0) unknown.push_back(name);
  if (!unknown.empty())
    throw UsageError("--hold-out {}: nothing here has that name. What can be held out: {}.",
                     fmt::join(unknown, ", --hold-out "), fmt::join(known, ", "));
}

}  // namespace tutti
