#include "cli/strategy_arguments.h"

namespace tutti {

void StrategyArguments::add_to(CLI::App& command, const std::string& group, bool offers_auto) {
  std::string help = "how gradients are synchronized:";
  for (const Strategy& strategy : strategies()) help += std::string("\n  ") + strategy.name + ": " + strategy.summary;
  if (offers_auto) help += "\n  auto: measure, simulate all of these, try the best few, keep the fastest";
  command.add_option("--strategy", name, help)->capture_default_str()->group(group);
  const auto add = [&](const char* option, double& value, const char* text) {
    command.add_option(option, value, text)->capture_default_str()->group(group);
  };
  add("--bucket-mb", bucket_mb, "buckets, dear, zero1: size of a bucket in MiB");
  add("--first-bucket-mb", first_bucket_mb, "buckets: size of the first bucket in MiB");
  add("--fusion-mb", fusion_mb, "fusion: largest message in MiB");
  add("--fusion-cycle-ms", fusion_cycle_ms, "fusion: milliseconds between messages");
  add("--partition-mb", partition_mb, "bytescheduler, …-ps: largest message in MiB; 0: search it, and the credit");
  add("--credit-mb", credit_mb,
      "bytescheduler, …-ps: MiB under way before the most urgent must wait; 0: a partition, with servers four");
  command
      .add_option("--servers", servers, "…-ps: parameter servers, processes beside the ranks; 0: a thread in each rank")
      ->capture_default_str()
      ->group(group);
}

StrategyOptions StrategyArguments::options() const {
  const auto bytes = [](double mebibytes) { return static_cast<int64_t>(mebibytes * (1 << 20)); };
  return {bytes(bucket_mb),    bytes(first_bucket_mb), bytes(fusion_mb), fusion_cycle_ms * 1e-3,
          bytes(partition_mb), bytes(credit_mb),       servers};
}

}  // namespace tutti
