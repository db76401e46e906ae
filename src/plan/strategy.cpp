#include "tutti/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "tutti/error.h"

// To add a strategy: NAME.cpp in strategies/, which defines `Strategy NAME_strategy()`, and its line here.
// clang-format off
#define TUTTI_FOR_EACH_STRATEGY(use) \
  use(bsp) \
  use(wfbp) \
  use(buckets) \
  use(fusion) \
  use(mgwfbp) \
  use(bytescheduler) \
  use(dear) \
  use(zero1) \
  use(bsp_ps) \
  use(wfbp_ps) \
  use(bytescheduler_ps)
// clang-format on

namespace tutti {

#define TUTTI_DECLARE(name) Strategy name##_strategy();
TUTTI_FOR_EACH_STRATEGY(TUTTI_DECLARE)
#undef TUTTI_DECLARE

namespace {

constexpr double kBytesPerMiB = 1 << 20;

std::vector<Strategy>& table() {
#define TUTTI_MAKE(name) name##_strategy(),
  static std::vector<Strategy> strategies = {TUTTI_FOR_EACH_STRATEGY(TUTTI_MAKE)};
#undef TUTTI_MAKE
  return strategies;
}

}  // namespace

const std::vector<Strategy>& strategies() { return table(); }

void add_strategy(const Strategy& strategy) {
  if (known_strategy(strategy.name) != nullptr || strategy.name == kAutoStrategy)
    throw UsageError("there is a strategy '{}' already: give yours another name", strategy.name);
  table().push_back(strategy);
}

const std::vector<StrategyOption>& strategy_options() {
  using Options = StrategyOptions;
  static const std::vector<StrategyOption> table = {
      {"bucket-mb", "bucket_bytes", &Options::bucket_bytes, kBytesPerMiB, above(0), "size of a bucket in MiB"},
      {"first-bucket-mb", "first_bucket_bytes", &Options::first_bucket_bytes, kBytesPerMiB, above(0),
       "size of the first bucket in MiB"},
      {"fusion-mb", "fusion_bytes", &Options::fusion_bytes, kBytesPerMiB, at_least(0), "largest message in MiB"},
      {"fusion-cycle-ms", "fusion_cycle_s", &Options::fusion_cycle_s, 1e-3, at_least(0),
       "milliseconds between messages"},
      {"partition-mb", "partition_bytes", &Options::partition_bytes, kBytesPerMiB, at_least(0),
       "largest message in MiB; 0: search it, and the credit"},
      {"credit-mb", "credit_bytes", &Options::credit_bytes, kBytesPerMiB, at_least(0),
       "MiB under way before the most urgent must wait; 0: a partition, with servers four"},
      {"servers", "servers", &Options::servers, 1, at_least(0),
       "parameter servers, processes beside the ranks; 0: a thread in each rank"},
  };
  return table;
}

bool Strategy::reads(const std::string& option) const {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), option) != names.end();
  };
  return has(sizes) || has(options) || (uses_servers && option == "servers");
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) names.push_back(strategy.name);
  return names;
}

const Strategy* known_strategy(const std::string& name) {
  for (const Strategy& strategy : strategies())
    if (name == strategy.name) return &strategy;
  return nullptr;
}

const Strategy& find_strategy(const std::string& name) {
  if (const Strategy* const strategy = known_strategy(name)) return *strategy;
  throw UsageError(unknown_name("strategy", name, strategy_names()));
}

std::string describe_sizes(const Strategy& strategy, const StrategyOptions& options) {
  std::string text;
  for (const StrategyOption& option : strategy_options()) {
    const bool is_size = std::find(strategy.sizes.begin(), strategy.sizes.end(), option.name) != strategy.sizes.end() ||
                         (strategy.uses_servers && option.name == "servers");
    if (!is_size) continue;
    const double value = std::visit([&](auto field) { return static_cast<double>(options.*field); }, option.field);
    text += fmt::format("{}--{} {:g}", text.empty() ? "" : " ", option.name, value / option.unit);
  }
  return text;
}

}  // namespace tutti
