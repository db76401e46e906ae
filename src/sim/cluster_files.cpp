#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_files.h"
#include "base/names.h"
#include "base/shipped_files.h"
#include "base/yaml_files.h"
#include "sim/cluster.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Cluster files by name; those in ./clusters come before those that are shipped.
NamedFiles cluster_files() { return yaml_files({"clusters", shipped_folder("clusters", TUTTI_CLUSTERS)}); }

/// A ring's link from what an all-reduce of `ranks` costs: start-up and bytes both pass 2 (P - 1) / P times.
Link link_from(const LinkCost& cost, double ranks) {
  Link link;
  const double share = 2 * (ranks - 1) / ranks;
  link.startup_s = cost.startup_s / (share * ranks);
  link.bytes_per_s = cost.per_byte_s > 0 ? share / cost.per_byte_s : 1e12;
  return link;
}

}  // namespace

Cluster cluster_from_links(const std::string& text, const std::string& file) {
  nlohmann::json json;
  try {
    json = parse_json(text, file);
  } catch (const Error& error) {
    throw UsageError("{}: not a links file of `tutti probe`: {}", file, error.what());
  }
  if (!json.is_object() || !json.contains("format") || json["format"] != "tutti-links-1")
    throw UsageError("{}: not a links file of `tutti probe`", file);
  Cluster cluster;
  cluster.name = fs::path(file).stem().string();
  try {
    cluster.about = "measured by tutti probe on " + json.value("date", "an unknown day");
    std::size_t fullest = 1;
    for (const auto& node : json.at("nodes")) fullest = std::max(fullest, node.at("ranks").size());
    // A processor that nobody has described: its profile has to come from a run.
    cluster.groups = {
        {static_cast<int>(json.at("nodes").size()), static_cast<int>(fullest), Device{"as measured", 50e9, 10e9}}};
    for (const auto& level : json.at("levels"))
      for (const auto& op : level.at("operations")) {
        if (op.at("operation") != "all_reduce") continue;
        const Link link = link_from(op.get<LinkCost>(), static_cast<double>(level.at("ranks").size()));
        if (level.at("level") == "nodes") cluster.network = link;
        if (level.at("level") == "node") cluster.inside = link;
        if (level.at("level") == "all" && cluster.network.bytes_per_s <= 0) cluster.network = link;
      }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("{}: a links file without what a plan needs: {}", file, error.what());
  }
  if (cluster.inside.bytes_per_s <= 0) cluster.inside = cluster.network;
  if (cluster.network.bytes_per_s <= 0) cluster.network = cluster.inside;
  if (cluster.inside.bytes_per_s <= 0) throw UsageError("{}: no all-reduce was measured in it", file);
  cluster.collective = Collective::ring;
  cluster.is_from_links = true;
  return cluster;
}

Cluster load_cluster(const std::string& name_or_file) {
  std::error_code ignored;
  fs::path path = name_or_file;
  if (!fs::is_regular_file(path, ignored)) {
    const auto files = cluster_files();
    const auto found = files.find(name_or_file);
    if (found == files.end())
      throw UsageError("{} A file of your own is named with its path.",
                       unknown_name("cluster", name_or_file, shipped_clusters()));
    path = found->second;
  }
  const std::string text = read_file(path);
  Cluster cluster =
      path.extension() == ".json" ? cluster_from_links(text, path.string()) : parse_cluster(text, path.string());
  if (cluster.name.empty()) cluster.name = path.stem().string();
  return cluster;
}

std::vector<std::string> shipped_clusters() { return names_in(cluster_files()); }

}  // namespace tutti
