#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tutti/strategy.h"

namespace tutti {

/// The strategy and its options as people give them: sizes in MiB, times in milliseconds.
struct StrategyArguments {
  std::string name = "buckets";
  double bucket_mb = 25;
  double first_bucket_mb = 1;
  double fusion_mb = 128;
  double fusion_cycle_ms = 1;
  double partition_mb = 4;
  double credit_mb = 0;
  int servers = 0;

  void add_to(CLI::App& command, const std::string& group, bool offers_auto = false);
  StrategyOptions options() const;
};

}  // namespace tutti
