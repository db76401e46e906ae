#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "netbox/network.h"

namespace tutti::netbox {

/// One machine of the box.
struct BoxNode {
  std::string name;           // its host name: n0, n1, …
  std::string net_namespace;  // tutti-CLUSTER-n0
  std::string port;           // the switch's end of its cable: p0
  std::string address;        // 10.77.0.1
  int slots = 1;              // ranks that mpirun puts there
  pid_t holder = 0;           // the process that keeps its namespaces; it sleeps
  BitRate rate = 0;           // its link's, in both directions
};

/// What `up` has built; kept in /run/tutti/cluster/NAME/state.json.
struct Box {
  std::string name;
  Network network;
  std::vector<BoxNode> nodes;

  std::string switch_namespace() const;
  /// "n1" or "1". Throws UsageError that suggests the nearest.
  const BoxNode& node(const std::string& name) const;
  std::vector<std::string> node_names() const;
};

void to_json(nlohmann::json& json, const Box& cluster);
void from_json(const nlohmann::json& json, Box& cluster);

/// Throws UsageError unless it can be part of a namespace's and a folder's name.
void check_cluster_name(const std::string& name);

std::filesystem::path state_root();  // /run/tutti/cluster
std::filesystem::path state_folder(const std::string& name);
std::string namespace_prefix(const std::string& name);  // "tutti-NAME-"
/// Whether this is the name of a namespace of this cluster, and not of one whose name merely begins alike.
bool is_namespace_of(const std::string& cluster, const std::string& name_space);

std::optional<Box> load_if_there(const std::string& name);
/// Throws Error that says which clusters there are when it is not up.
Box load(const std::string& name);
void save(const Box& cluster);
std::vector<std::string> cluster_names();

/// One command at a time changes clusters. Programs started by run_tool() hold the lock too: what a killed command has
/// started is then over before the next one looks at what is left.
class StateLock {
 public:
  StateLock();
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  int fd_;
};

}  // namespace tutti::netbox
