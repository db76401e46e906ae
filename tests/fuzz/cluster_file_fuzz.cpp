// A cluster file or a links file goes in; out comes what `tutti plan` predicts on it.
#include "fuzz/command.h"

namespace tutti::fuzz {

static std::string fuzz_cluster_file(std::string_view input) {
  const bool is_json = !input.empty() && input[0] == '{' && input.find("format") != std::string_view::npos;
  const char* const name = is_json ? "links.json" : "cluster.yaml";
  write_input(input, {name});
  return command_outcome({"plan", "--model", "mnist-cnn", "--cluster", (command_folder() / name).string()});
}

static std::vector<std::string> cluster_file_seeds() {
  return {
      "name: two\nnodes:\n  - {count: 2, devices: 4, device: {name: A, tflops: 10, memory_gb_per_s: 600}}\n"
      "  - {count: 1, devices: 2, device: {name: B, tflops: 20, memory_gb_per_s: 900}}\n"
      "inside: {gb_per_s: 10, startup_us: 5}\nnetwork: {gb_per_s: 1.2, startup_us: 30, duplex: 1.5}\n"
      "collective: hierarchical\nsoftware: {negotiation_us: 100, slowdown: 0.1}\n",
      "nodes: [{device: {tflops: 1, memory_gb_per_s: 1}}]\n"
      "inside: {gb_per_s: 1, connection_gb_per_s: 1, connections: 2, jitter: 0.1}\ncollective: tree\n",
      R"({"format": "tutti-links-1", "date": "today", "nodes": [{"host": "a", "ranks": [0, 1]}], "levels": [{"level":)"
      R"( "node", "ranks": [0, 1], "operations": [{"operation": "all_reduce", "startup_s": 60e-6, "per_byte_s":)"
      R"( 0.3e-9, "residual": 0, "samples": []}]}]})",
      "1e9",
      "nan",
      "{}",
      "[]",
      "[[[[[[",
      "software: {max_in_flight: 1e30}",
      "\"level\": \"nodes\""};
}

static const Target kClusterFile("cluster_file", fuzz_cluster_file, cluster_file_seeds);

}  // namespace tutti::fuzz
