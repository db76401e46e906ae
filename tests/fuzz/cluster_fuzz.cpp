// A cluster file or a links file goes in; what can be read can be laid out, and a message on it takes a time.
#include <cmath>
#include <stdexcept>

#include "fuzz/fuzz.h"
#include "sim/message_cost.h"

namespace tutti::fuzz {

static std::string fuzz_cluster(std::string_view input) {
  return outcome([&] {
    const std::string text(input);
    const bool is_json = !input.empty() && input[0] == '{' && input.find("format") != std::string_view::npos;
    const Cluster cluster = is_json ? cluster_from_links(text, "links.json") : parse_cluster(text, "c.yaml");
    for (const int ranks : {1, 2, cluster.devices()}) {
      const Layout layout = lay_out(cluster, ranks);
      Transfer transfer;
      transfer.end = 1 << 20;
      const double seconds = seconds_alone(transfer, {}, cluster, layout);
      if (!std::isfinite(seconds) || seconds < 0) throw std::logic_error("a message takes no time that there is");
    }
  });
}

static std::vector<std::string> cluster_seeds() {
  return {
      R"(
name: two
nodes:
  - {count: 2, devices: 4, device: {name: A, tflops: 10, memory_gb_per_s: 600}}
  - {count: 1, devices: 2, device: {name: B, tflops: 20, memory_gb_per_s: 900}}
inside: {gb_per_s: 10, startup_us: 5}
network: {gb_per_s: 1.2, startup_us: 30, duplex: 1.5}
collective: hierarchical
software: {negotiation_us: 100, slowdown: 0.1}
)",
      R"(
nodes: [{device: {tflops: 1, memory_gb_per_s: 1}}]
inside: {gb_per_s: 1, connection_gb_per_s: 1, connections: 2, jitter: 0.1}
collective: tree
)",
      R"({"format": "tutti-links-1", "date": "today", "nodes": [{"host": "a", "ranks": [0, 1]}], "levels": [{"level":
      "node", "ranks": [0, 1], "operations": [{"operation": "all_reduce", "startup_s": 60e-6, "per_byte_s": 0.3e-9,
      "residual": 0, "samples": []}]}]})",
      "1e9",
      "nan",
      "{}",
      "[]",
      "software: {max_in_flight: 1e30}",
      "\"level\": \"nodes\""};
}

static const Target kCluster("cluster", fuzz_cluster, cluster_seeds);

}  // namespace tutti::fuzz
