#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tutti/links.h"
#include "tutti/plan.h"
#include "tutti/range.h"

namespace tutti {

/// What strategies can be told. Each says in its `sizes` and `options` which of these it reads.
struct StrategyOptions {
  int64_t bucket_bytes = 25 << 20;       // a group closes once it holds this much
  int64_t first_bucket_bytes = 1 << 20;  // the first one is small, so that communication starts early
  int64_t fusion_bytes = 128 << 20;      // most bytes in one message
  double fusion_cycle_s = 1e-3;          // how often what is ready is sent
  int64_t partition_bytes = 4 << 20;     // longest message; 0: search, with the credit
  /// Bytes under way before the most urgent one must wait. 0: one partition of all-reduces, which run one after the
  /// other, so that more would only hold up what is urgent; four through servers.
  int64_t credit_bytes = 0;
  int servers = 0;  // parameter servers; 0: one beside each rank
};

/// One of these as people and records give it: sizes in MiB on the command line, in bytes in records.
struct StrategyOption {
  using Field = std::variant<int64_t StrategyOptions::*, double StrategyOptions::*, int StrategyOptions::*>;
  std::string name;  // on the command line: "bucket-mb"
  std::string key;   // in records: "bucket_bytes"
  Field field;
  double unit;  // bytes in a MiB, seconds in a millisecond; 1: as it is
  Range range;  // of what people give
  std::string help;
};
const std::vector<StrategyOption>& strategy_options();

/// How a strategy makes messages of tensors.
enum class Merging {
  none,     // it does not, or takes all there are
  by_size,  // up to a size
  by_cost,  // as far as what messages cost makes it worthwhile
};

/// A strategy is a pure function from what was measured to a Plan: no threads, no tensors. Here is also all that others
/// know about it.
struct Strategy {
  std::string name;
  std::string summary;  // one line for --help
  Plan (*make_plan)(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) = nullptr;
  std::vector<std::string> sizes = {};    // options that a search chooses and a person may repeat: "bucket-mb"
  std::vector<std::string> options = {};  // other options that it reads
  bool uses_links = false;                // the ranks' links have to be measured first
  bool uses_servers = false;              // its gradients travel through parameter servers
  bool only_all_reduces = true;           // whether all that it ever plans are all_reduces
  bool overlaps_backward = true;          // whether messages travel before backward is over
  Merging merging = Merging::none;
  /// The sizes worth simulating on any cluster: a coarse grid, since a step's length is flat around its best. Null: one
  /// plan, whatever the sizes.
  std::vector<StrategyOptions> (*sizes_to_plan)(const StrategyOptions& given) = nullptr;
  /// The sizes worth trying in a run that sends so many bytes a step. Null: it has none, or finds its own.
  std::vector<StrategyOptions> (*sizes_to_try)(const StrategyOptions& given, int64_t bytes) = nullptr;

  bool reads(const std::string& option) const;
};

/// Instead of a strategy's name: measure, simulate all, try the best few, and keep the winner.
constexpr const char* kAutoStrategy = "auto";

const std::vector<Strategy>& strategies();
/// One more, for this process. Throws UsageError where the name is taken.
void add_strategy(const Strategy& strategy);
std::vector<std::string> strategy_names();
/// Null for an unknown name.
const Strategy* known_strategy(const std::string& name);
/// Throws UsageError for an unknown name.
const Strategy& find_strategy(const std::string& name);
/// The first in the table that `has` something: what to recommend.
template <typename Has>
const Strategy& first_strategy(Has has) {
  for (const Strategy& strategy : strategies())
    if (has(strategy)) return strategy;
  return strategies().front();
}

/// The sizes of a strategy as options of the command line: "--bucket-mb 25".
std::string describe_sizes(const Strategy& strategy, const StrategyOptions& options);

/// Everything in one all_reduce after backward: what a job starts with, whatever its strategy.
Plan make_bsp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);

}  // namespace tutti
